#include <algorithm>

#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cresset::passes {

bool dead_code(Graph& graph) {
  std::vector<bool> live(graph.value_count(), false);
  for (ValueId v : graph.outputs) live[v.index] = true;
  for (const graph::Mutation& m : graph.mutations) live[m.value.index] = true;
  std::vector<NodeId> kept;
  for (auto it = graph.order.rbegin(); it != graph.order.rend(); ++it) {
    const graph::Node& node = graph.node(*it);
    const bool used = std::any_of(node.results.begin(), node.results.end(), [&](ValueId v) { return live[v.index]; });
    if (!used && !has_effects(node)) continue;
    Graph::for_each_value(node.args, [&](const ValueId& v) { live[v.index] = true; });
    kept.push_back(*it);
  }
  const bool changed = kept.size() != graph.order.size();
  graph.order.assign(kept.rbegin(), kept.rend());
  return changed;
}

}  // namespace cresset::passes
