#include "ops/interpret.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_map>

#include "base/check.h"
#include "ops/op_def.h"
#include "sym/eval.h"

namespace cresset::ops {

using graph::Graph;
using graph::Node;
using graph::TensorType;
using graph::ValueId;
using sym::ExprId;

int64_t HostTensor::numel() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

HostTensor HostTensor::zeros(DType dtype, std::vector<int64_t> sizes) {
  HostTensor out{dtype, std::move(sizes), {}};
  out.data.resize(static_cast<size_t>(out.numel() * byte_size(dtype)));
  return out;
}

namespace {

ExprId row_major(sym::ExprPool& pool, const std::vector<ExprId>& sizes, const Index& index) {
  ExprId address = pool.constant(0);
  for (size_t d = 0; d < index.size(); ++d) address = pool.add(pool.mul(address, sizes[d]), index[d]);
  return address;
}

// Lowers a single node: every argument is a buffer.
class OneNode final : public ElementContext {
 public:
  OneNode(const Graph& graph, const Node& node)
      : graph_(graph), node_(node), kernel_(graph.env_ptr()), scalars_(kernel_) {}

  loop::ScalarId element(ValueId value, const Index& index) override {
    const auto id = buffer(value);
    kernel_.buffers[id.index].read = true;
    return scalars_.load(id, row_major(pool(), graph_.type(value).sizes, index));
  }
  loop::ScalarBuilder& scalars() override { return scalars_; }
  const Graph& graph() override { return graph_; }
  const TensorType& result_type(size_t result) override { return graph_.type(node_.results[result]); }

  ExprId add_dim(ExprId extent, loop::Dim::Kind kind) {
    const ExprId var = env().new_index_var(extent);
    kernel_.dims.push_back({pool().var_of(var), extent, kind});
    return var;
  }
  void store(ValueId into, const Index& index, loop::ScalarId value) {
    const auto id = buffer(into);
    kernel_.buffers[id.index].written = true;
    const TensorType& type = graph_.type(into);
    kernel_.stores.push_back(
        {id, row_major(pool(), type.sizes, index), scalars_.cast(value, compute_dtype(type.dtype))});
  }

  const loop::Kernel& kernel() const { return kernel_; }
  const std::vector<ValueId>& buffers() const { return values_; }

 private:
  loop::BufferId buffer(ValueId value) {
    const auto it = std::find(values_.begin(), values_.end(), value);
    const auto position = static_cast<uint32_t>(it - values_.begin());
    if (it == values_.end()) {
      values_.push_back(value);
      kernel_.buffers.push_back({.dtype = graph_.type(value).dtype, .name = fmt::format("%{}", value.index)});
    }
    return {position};
  }

  const Graph& graph_;
  const Node& node_;
  loop::Kernel kernel_;
  loop::ScalarBuilder scalars_;
  std::vector<ValueId> values_;
};

Index outer_dims(OneNode& lower, const std::vector<ExprId>& sizes) {
  Index index;
  for (const ExprId size : sizes) index.push_back(lower.add_dim(size, loop::Dim::Kind::Outer));
  return index;
}

void lower_elementwise(OneNode& lower, const Graph& graph, const OpDef& def, const Node& node, size_t result) {
  const OpArgs args(graph, node.args);
  const ValueId into = node.results[result];
  const Index index = outer_dims(lower, graph.type(into).sizes);
  const loop::ScalarId value = def.op_class == OpClass::View
                                   ? lower.element(args.value(0), def.view(lower, args, result, index))
                                   : def.element(lower, args, result, index);
  lower.store(into, index, value);
}

void lower_reduction(OneNode& lower, const Graph& graph, const OpDef& def, const Node& node, size_t result) {
  const OpArgs args(graph, node.args);
  const ValueId into = node.results[result];
  const Reduction reduction = def.reduction(graph, args, result);
  const std::vector<ExprId>& sizes = args.tensor(0).sizes;
  const auto folded = [&](size_t d) {
    return std::binary_search(reduction.dims.begin(), reduction.dims.end(), static_cast<int64_t>(d));
  };
  Index operand(sizes.size()), index;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!folded(d))
      index.push_back(operand[d] = lower.add_dim(sizes[d], loop::Dim::Kind::Outer));
    else if (reduction.keepdim)
      index.push_back(lower.pool().constant(0));
  }
  for (size_t d = 0; d < sizes.size(); ++d)
    if (folded(d)) operand[d] = lower.add_dim(sizes[d], loop::Dim::Kind::Inner);
  loop::ScalarBuilder& scalars = lower.scalars();
  const loop::ScalarId term = scalars.cast(def.element(lower, args, result, operand), reduction.accumulate);
  lower.store(into, index, scalars.reduce(reduction.combine, term));
}

class Interpreter {
 public:
  explicit Interpreter(Graph& graph) : graph_(graph) {}

  void bind(const std::vector<ValueId>& ids, std::span<const HostTensor> tensors) {
    CRESSET_CHECK(ids.size() == tensors.size(), "one tensor for each input and constant");
    for (size_t i = 0; i < ids.size(); ++i) {
      const TensorType& type = graph_.type(ids[i]);
      CRESSET_CHECK(type.rank() == tensors[i].sizes.size() && type.dtype == tensors[i].dtype,
                    "a tensor of another type");
      for (size_t d = 0; d < type.rank(); ++d)
        if (graph_.pool().is_var(type.sizes[d])) symbols_[graph_.pool().var_of(type.sizes[d])] = tensors[i].sizes[d];
      values_[ids[i]] = tensors[i];
    }
  }

  Result<bool> run(graph::NodeId id) {
    const Node& node = graph_.node(id);
    const OpDef* def = find(node.op);
    if (def == nullptr) return refuse(node, "has no row");
    switch (def->op_class) {
      case OpClass::Pointwise:
      case OpClass::View:
        if (def->element == nullptr && def->view == nullptr) return refuse(node, "has no element rule");
        for (size_t r = 0; r < node.results.size(); ++r) run_kernel(node, r, *def, lower_elementwise);
        return true;
      case OpClass::Reduction:
        for (size_t r = 0; r < node.results.size(); ++r) run_kernel(node, r, *def, lower_reduction);
        return true;
      case OpClass::Concat:
        return concatenate(node);
      case OpClass::Composite:
        return decompose(id, *def);
      case OpClass::Extern:
        return refuse(node, "is an extern call");
    }
    return refuse(node, "is of no class");
  }

  HostTensor take(ValueId id) const { return values_.at(id); }

 private:
  static Result<bool> refuse(const Node& node, std::string_view why) {
    return Fallback{FallbackReason::UnsupportedOperator, fmt::format("{} {}", graph::op_name(node.op), why), ""};
  }

  int64_t value_of(ExprId e) const {
    const auto value = sym::eval(graph_.pool(), e, [&](sym::VarId var) -> std::optional<int64_t> {
      if (const auto it = symbols_.find(var); it != symbols_.end()) return it->second;
      const sym::Symbol* symbol = graph_.env().symbol(var);
      return symbol == nullptr ? std::nullopt : symbol->hint;
    });
    CRESSET_CHECK(value, fmt::format("{} has no value", graph_.env().to_string(e)));
    return *value;
  }

  HostTensor& allocate(ValueId id) {
    const TensorType& type = graph_.type(id);
    std::vector<int64_t> sizes;
    for (const ExprId size : type.sizes) sizes.push_back(value_of(size));
    return values_[id] = HostTensor::zeros(type.dtype, std::move(sizes));
  }

  template <class Lower>
  void run_kernel(const Node& node, size_t result, const OpDef& def, Lower&& lower) {
    OneNode one(graph_, node);
    lower(one, graph_, def, node, result);
    const HostTensor& into = allocate(node.results[result]);
    if (into.numel() == 0) return;
    execute(one);
  }

  void execute(const OneNode& one) {
    std::vector<void*> buffers;
    for (const ValueId v : one.buffers()) buffers.push_back(values_.at(v).data.data());
    std::vector<int64_t> symbols;
    for (const sym::VarId var : one.kernel().size_symbols()) symbols.push_back(value_of(graph_.pool().var(var)));
    loop::interpret(one.kernel(), buffers.data(), symbols.data());
  }

  // Arguments of a different dtype are converted, so a copy kernel writes each argument.
  Result<bool> concatenate(const Node& node) {
    const OpArgs args(graph_, node.args);
    const ValueId into = node.results[0];
    const size_t rank = graph_.type(into).rank();
    const int64_t wrapped = args.constant(1);
    const auto dim = static_cast<size_t>(wrapped < 0 ? wrapped + static_cast<int64_t>(rank) : wrapped);
    allocate(into);
    ExprId offset = graph_.pool().constant(0);
    for (const graph::OptionalValue& part : args.values(0)) {
      if (values_.at(*part).numel() == 0) continue;
      OneNode one(graph_, node);
      const Index index = outer_dims(one, graph_.type(*part).sizes);
      Index window = index;
      window[dim] = graph_.pool().add(index[dim], offset);
      one.store(into, window, one.element(*part, index));
      execute(one);
      offset = graph_.pool().add(offset, graph_.type(*part).sizes[dim]);
    }
    return true;
  }

  Result<bool> decompose(graph::NodeId id, const OpDef& def) {
    std::vector<graph::NodeId> order = std::exchange(graph_.order, {});
    const Node& node = graph_.node(id);
    const Result<std::vector<ValueId>> replaced = def.decompose(graph_, OpArgs(graph_, node.args));
    const std::vector<graph::NodeId> steps = std::exchange(graph_.order, std::move(order));
    if (!replaced.ok()) return replaced.fallback();
    for (const graph::NodeId step : steps) {
      CRESSET_TRY([[maybe_unused]] const bool ran, run(step));
    }
    for (size_t r = 0; r < replaced->size(); ++r) values_[node.results[r]] = values_.at((*replaced)[r]);
    return true;
  }

  Graph& graph_;
  std::unordered_map<ValueId, HostTensor> values_;
  std::unordered_map<sym::VarId, int64_t> symbols_;
};

}  // namespace

Result<Interpreted> interpret(Graph& graph, std::span<const HostTensor> inputs, std::span<const HostTensor> constants) {
  Interpreter interpreter(graph);
  interpreter.bind(graph.inputs, inputs);
  interpreter.bind(graph.constants, constants);
  const std::vector<graph::NodeId> order = graph.order;
  for (const graph::NodeId id : order) {
    CRESSET_TRY([[maybe_unused]] const bool ran, interpreter.run(id));
  }
  Interpreted out;
  for (const ValueId v : graph.outputs) out.outputs.push_back(interpreter.take(v));
  for (const graph::Mutation& m : graph.mutations) out.mutated.push_back(interpreter.take(m.value));
  return out;
}

}  // namespace cresset::ops
