#include "ops/op_def.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cresset::passes {
namespace {

// An operator without an OpDef may return its argument's memory (aten::view_as_real, aten::view.dtype). Copies of its
// result must stay copies.
bool may_be_view(const Graph& graph, ValueId value) {
  const graph::Value& made = graph.value(value);
  return made.kind == graph::Value::Kind::Result && ops::find(graph.node(made.node).op) == nullptr;
}

}  // namespace

bool remove_no_ops(Graph& graph) {
  Escaping escaping(graph);
  const bool changed = rewrite_nodes(graph, [&](NodeId id, Replacements& replacements) {
    const graph::Node& node = graph.node(id);
    const ops::OpDef* def = ops::find(node.op);
    if (def == nullptr || def->is_no_op == nullptr || !std::holds_alternative<ValueId>(node.args[0])) return;
    const ValueId from = std::get<ValueId>(node.args[0]), to = node.results[0];
    if (!same_type(graph.type(from), graph.type(to)) || !def->is_no_op(ops::OpArgs(graph, node.args))) return;
    if (may_be_view(graph, from) || escaping.forbids(to, from)) return;
    replacements.add(to, from);
    escaping.replaced(to, from);
  });
  if (changed) dead_code(graph);
  return changed;
}

}  // namespace cresset::passes
