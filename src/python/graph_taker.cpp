#include "python/graph_taker.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "ops/effects.h"

namespace py = pybind11;

namespace cresset::python {
namespace {

using graph::ExprId;
using graph::ValueId;

// Describes a graph by plain Python objects. An argument which is no plain object is a tuple of its kind and contents.
class Description {
 public:
  explicit Description(const graph::Graph& graph) : graph_(graph), names_(graph.env().names()) {}

  py::dict of(const driver::Boundary& boundary) {
    py::dict out;
    py::list inputs, symbols, nodes, results;
    for (const ValueId v : boundary.values) inputs.append(py::make_tuple(v.index, graph_.value(v).name, type(v)));
    for (const ExprId e : boundary.symbols) symbols.append(py::make_tuple(name(graph_.pool().var_of(e)), hint(e)));
    for (const graph::NodeId id : graph_.order) nodes.append(node(graph_.node(id)));
    for (const ValueId v : boundary.results) results.append(v.index);
    out["inputs"] = inputs;
    out["symbols"] = symbols;
    out["nodes"] = nodes;
    out["results"] = results;
    return out;
  }

 private:
  py::tuple node(const graph::Node& node) {
    py::list args, results;
    for (const graph::Arg& arg : node.args) args.append(std::visit([&](const auto& a) { return argument(a); }, arg));
    for (const ValueId v : node.results) results.append(py::make_tuple(v.index, type(v)));
    return py::make_tuple(std::string(graph::op_name(node.op)), args, results, graph_.locations.at(node.location));
  }

  // dtype, device, sizes, strides: integers at the hints, None where unknown.
  py::tuple type(ValueId v) {
    const graph::TensorType& type = graph_.type(v);
    py::list sizes, strides;
    for (const ExprId e : type.sizes) sizes.append(hint(e));
    for (const ExprId e : type.strides) strides.append(argument(e));
    return py::make_tuple(std::string(to_string(type.dtype)), argument(type.device), sizes, strides);
  }

  py::object hint(ExprId e) {
    const std::optional<int64_t> known = graph_.env().hint(e);
    return known ? py::object(py::int_(*known)) : py::object(py::none());
  }

  std::string name(sym::VarId var) {
    const auto found = names_.find(var);
    return found == names_.end() ? "s" + std::to_string(var.index) : found->second;
  }

  py::object argument(const graph::None&) { return py::none(); }
  py::object argument(ValueId v) { return py::make_tuple("value", v.index); }
  py::object argument(const graph::OptionalValue& v) { return v ? argument(*v) : py::object(py::none()); }
  py::object argument(double x) { return py::float_(x); }
  py::object argument(bool x) { return py::bool_(x); }
  py::object argument(const std::string& x) { return py::str(x); }
  py::object argument(DType x) { return py::make_tuple("dtype", std::string(to_string(x))); }
  py::object argument(graph::MemoryFormat x) { return py::make_tuple("memory_format", static_cast<int>(x)); }
  py::object argument(graph::StridedLayout) { return py::make_tuple("layout"); }
  py::object argument(Device x) {
    return py::make_tuple("device", static_cast<int>(x.kind), static_cast<int>(x.index));
  }

  py::object argument(ExprId id) {
    const sym::ExprPool& pool = graph_.pool();
    if (pool.is_const(id)) return py::int_(pool.const_value(id));
    if (pool.is_var(id)) return py::make_tuple("symbol", name(pool.var_of(id)));
    static constexpr const char* kKinds[] = {
#define CRESSET_SYM_KIND(name, text) text,
#include "sym/kinds.def"
#undef CRESSET_SYM_KIND
    };
    py::list operands;
    for (const ExprId e : pool.operands(id)) operands.append(argument(e));
    return py::make_tuple("expression", kKinds[static_cast<size_t>(pool[id].kind)], operands);
  }

  template <class T>
  py::object argument(const std::vector<T>& list) {
    py::list out;
    for (const auto& x : list) out.append(argument(static_cast<T>(x)));
    return out;
  }

  const graph::Graph& graph_;
  const sym::VarNames names_;
};

bool process_ends() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() == 0 || Py_IsFinalizing() != 0;
#else
  return Py_IsInitialized() == 0 || _Py_IsFinalizing() != 0;
#endif
}

class Taker final : public driver::GraphTaker {
 public:
  explicit Taker(py::object take) : take_(std::move(take)) {}
  ~Taker() override {
    if (process_ends()) {
      take_.release();
    } else {
      const py::gil_scoped_acquire gil;
      take_ = py::object();
    }
  }
  Taker(const Taker&) = delete;
  Taker& operator=(const Taker&) = delete;

  void take(graph::Graph& graph) override {
    const driver::Boundary boundary = driver::boundary(graph);
    const bool acts = std::any_of(graph.order.begin(), graph.order.end(),
                                  [&](graph::NodeId id) { return ops::has_effects(graph.node(id)); });
    if (boundary.results.empty() && !acts) return graph.order.clear();
    driver::replace_nodes(graph, "cresset::run_graph", number_of(graph, boundary), boundary);
  }

 private:
  int64_t number_of(const graph::Graph& graph, const driver::Boundary& boundary) {
    const py::gil_scoped_acquire gil;
    try {
      return take_(Description(graph).of(boundary)).cast<int64_t>();
    } catch (const std::exception& e) {
      throw InternalError(std::string("a graph for another compiler: ") + e.what());
    }
  }

  py::object take_;
};

}  // namespace

std::shared_ptr<driver::GraphTaker> graph_taker(py::object take) {
  return take.is_none() ? nullptr : std::make_shared<Taker>(std::move(take));
}

}  // namespace cresset::python
