#include <array>

#include "ops/known_elements.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cresset::passes {
namespace {

using graph::Arg;
using graph::Node;
using graph::None;

// Position of the fill value in aten::full's arguments.
constexpr size_t kFillValue = 1;

bool is_full(const Graph& graph, ValueId v, graph::OpId full) {
  const graph::Value& value = graph.value(v);
  return value.node.valid() && graph.node(value.node).op == full;
}

// Returns the fill value cast to `dtype`, or nullopt when the cast depends on rounding done only by kernels.
std::optional<Arg> cast_fill(const Graph& graph, const Arg& fill, DType dtype) {
  if (const auto* e = std::get_if<sym::ExprId>(&fill)) {
    if (dtype == DType::Bool) return std::nullopt;
    if (is_integral(dtype)) return fill;
    if (!graph.pool().is_const(*e)) return std::nullopt;
    return static_cast<double>(graph.pool().const_value(*e));
  }
  if (const auto* flag = std::get_if<bool>(&fill)) {
    if (dtype == DType::Bool) return fill;
    return is_float(dtype) ? Arg(*flag ? 1.0 : 0.0) : Arg(graph.pool().constant(*flag ? 1 : 0));
  }
  if (std::holds_alternative<double>(fill) && (dtype == DType::F32 || dtype == DType::F64)) return fill;
  return std::nullopt;
}

// The number with which the only result of a node is filled, if any.
class Fills {
 public:
  explicit Fills(Graph& graph)
      : graph_(graph), known_(graph, [&graph](sym::ExprId a, sym::ExprId b) {
          return graph.env().known_true(graph.pool().le(a, b));
        }) {}

  std::optional<Arg> of(const Node& node) {
    if (node.results.size() != 1) return std::nullopt;
    const ops::OpDef* def = ops::find(node.op);
    const bool views = def != nullptr && def->op_class == ops::OpClass::View;
    const graph::TensorType& type = graph_.type(node.results[0]);
    if ((views || node.op == cast_) && std::holds_alternative<ValueId>(node.args[0]) &&
        is_full(graph_, std::get<ValueId>(node.args[0]), full_)) {
      const Arg& given = graph_.node(graph_.value(std::get<ValueId>(node.args[0])).node).args[kFillValue];
      return views ? std::optional<Arg>(given) : cast_fill(graph_, given, type.dtype);
    }
    // Comparisons and connectives. Other booleans are no work, or data.
    if (type.dtype != DType::Bool || views || node.op == full_ || node.op == cast_) return std::nullopt;
    const std::optional<bool> truth = known_.truth(node.results[0]);
    return truth ? std::optional<Arg>(*truth) : std::nullopt;
  }

 private:
  Graph& graph_;
  ops::KnownElements known_;
  const graph::OpId full_ = graph::op_id("aten::full"), cast_ = graph::op_id("aten::_to_copy");
};

}  // namespace

// A view or a cast of a filled tensor is a filled tensor, and so is a comparison with one answer. Arithmetic on filled
// tensors needs no rule: kernels fold scalars.
bool fold_constants(Graph& graph) {
  const graph::OpId full = graph::op_id("aten::full");
  const ops::OpDef* full_def = ops::find(full);
  if (full_def == nullptr) return false;
  std::vector<NodeId> order = std::exchange(graph.order, {});
  Replacements replacements;
  Fills fills(graph);
  for (NodeId id : order) {
    Node& node = graph.node(id);
    replacements.apply(node.args);
    const std::optional<Arg> fill = fills.of(node);
    const graph::TensorType type = fill ? graph.type(node.results[0]) : graph::TensorType();
    // A view has eager mode's strides of an output; a fresh tensor would have other strides.
    if (!fill || type.strides != graph::contiguous_strides(graph.pool(), type.sizes)) {
      graph.order.push_back(id);
      continue;
    }
    graph.current_location = node.location;
    const NodeId filled = graph.add_node(full, {type.sizes, *fill, type.dtype, None{}, type.device, None{}}, {type});
    replacements.add(node.results[0], graph.node(filled).results[0]);
  }
  replacements.apply_to_results(graph);
  if (!replacements.empty()) dead_code(graph);
  return !replacements.empty();
}

}  // namespace cresset::passes
