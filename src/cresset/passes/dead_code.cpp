#include <algorithm>

#include "ops/index_reads.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cresset::passes {

namespace {

// If only the first result is used, replaces the operator by a variant which computes only this result.
bool leave_first_alone(Graph& graph, NodeId id, const std::vector<bool>& live) {
  graph::Node& node = graph.node(id);
  if (node.results.size() < 2 || node.through_aten) return false;
  if (std::any_of(node.results.begin() + 1, node.results.end(), [&](ValueId v) { return live[v.index]; })) return false;
  const ops::OpDef* def = ops::find(node.op);
  if (def == nullptr || def->alone == nullptr) return false;
  const std::string_view alone = def->alone(ops::OpArgs(graph, node.args));
  if (alone.empty()) return false;
  node.op = graph::op_id(alone);
  node.results.resize(1);
  return true;
}

}  // namespace

bool dead_code(Graph& graph) {
  bool replaced = false;
  std::vector<bool> live(graph.value_count(), false);
  for (ValueId v : graph.outputs) live[v.index] = true;
  for (const graph::Mutation& m : graph.mutations) live[m.value.index] = true;
  std::vector<NodeId> kept;
  for (auto it = graph.order.rbegin(); it != graph.order.rend(); ++it) {
    graph::Node& node = graph.node(*it);
    const bool used = std::any_of(node.results.begin(), node.results.end(), [&](ValueId v) { return live[v.index]; });
    if (!used && !has_effects(node)) {
      if (!node.caught) continue;
      // No generated kernel raises the operator's error for unused results, except that of an index.
      node.through_aten = !ops::reads_in_kernels(graph, node);
    }
    Graph::for_each_value(node.args, [&](const ValueId& v) { live[v.index] = true; });
    replaced |= leave_first_alone(graph, *it, live);
    kept.push_back(*it);
  }
  const bool changed = replaced || kept.size() != graph.order.size();
  graph.order.assign(kept.rbegin(), kept.rend());
  return changed;
}

}  // namespace cresset::passes
