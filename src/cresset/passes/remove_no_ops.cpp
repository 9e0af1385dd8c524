#include "ops/op_def.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cresset::passes {
namespace {

// An operator without an OpDef may return its argument's memory (aten::view_as_real, aten::view.dtype). Copies of its
// result, and of views of its result, must stay copies.
bool may_be_view(const Graph& graph, ValueId value) {
  const graph::Value& made = graph.value(value);
  return made.kind == graph::Value::Kind::Result && ops::find(graph.node(made.node).op) == nullptr;
}

// A write to a slice that is the whole tensor (x[:, :, i] = y records some) gives its source.
bool gives_source(const Graph& graph, const graph::Node& node) {
  static const graph::OpId slice_scatter = graph::op_id("aten::slice_scatter");
  if (node.op != slice_scatter || !std::holds_alternative<ValueId>(node.args[1])) return false;
  const ops::OpArgs args(graph, node.args);
  return graph.env().known_equal(args.integer(5), graph.pool().constant(1)) &&
         args.tensor(0).sizes == args.tensor(1).sizes;
}

}  // namespace

bool remove_no_ops(Graph& graph) {
  Escaping escaping(graph);
  const bool changed = rewrite_nodes(graph, [&](NodeId id, Replacements& replacements) {
    const graph::Node& node = graph.node(id);
    const ops::OpDef* def = ops::find(node.op);
    const bool source = gives_source(graph, node);
    if (def == nullptr || (def->is_no_op == nullptr && !source)) return;
    const size_t kept = source ? 1 : 0;
    if (!std::holds_alternative<ValueId>(node.args[kept])) return;
    const ValueId from = std::get<ValueId>(node.args[kept]), to = node.results[0];
    if (!same_type(graph.type(from), graph.type(to))) return;
    if (!source && !def->is_no_op(ops::OpArgs(graph, node.args))) return;
    if (may_be_view(graph, memory_of(graph, from)) || escaping.forbids(to, from)) return;
    replacements.add(to, from);
    escaping.replaced(to, from);
  });
  if (changed) dead_code(graph);
  return changed;
}

}  // namespace cresset::passes
