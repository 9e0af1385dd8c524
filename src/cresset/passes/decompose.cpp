#include "ops/special_dtypes.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cresset::passes {

// Depth first: the nodes appended by a decomposition are decomposed in its place, before the next node.
bool decompose(Graph& graph) {
  Replacements replacements;
  std::vector<NodeId> pending(graph.order.rbegin(), graph.order.rend()), done;
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    graph::Node& node = graph.node(id);
    if (!replacements.empty()) replacements.apply(node.args);
    const ops::OpDef* def = ops::find(node.op);
    if (def == nullptr || def->decompose == nullptr || node.through_aten || !ops::kernels_hold(graph, node)) {
      done.push_back(id);
      continue;
    }
    graph.order.clear();
    graph.current_location = node.location;
    const Result<std::vector<ValueId>> values = def->decompose(graph, ops::OpArgs(graph, node.args));
    if (!values.ok()) {
      done.push_back(id);
      continue;
    }
    CRESSET_CHECK(values->size() == node.results.size(), "a decomposition gives every result");
    for (size_t r = 0; r < values->size(); ++r) {
      if (graph.value((*values)[r]).name.empty()) graph.value((*values)[r]).name = graph.value(node.results[r]).name;
      replacements.add(node.results[r], (*values)[r]);
    }
    pending.insert(pending.end(), graph.order.rbegin(), graph.order.rend());
  }
  graph.order = std::move(done);
  replacements.apply_to_results(graph);
  return !replacements.empty();
}

}  // namespace cresset::passes
