#include "bridge/capture/graph_cut.h"

#include <algorithm>

#include "bridge/capture/capture_abort.h"
#include "ops/effects.h"
#include "ops/op_traits.h"

namespace cresset::bridge {

bool is_random(graph::OpId op) { return ops::traits(op).draws; }

std::unique_ptr<graph::Graph> cut_to(const graph::Graph& graph, graph::ValueId value) {
  auto cut = std::make_unique<graph::Graph>(graph);
  cut->mutations.clear();
  cut->outputs = {value};
  std::vector<bool> needed(cut->value_count(), false);
  needed[value.index] = true;
  std::vector<graph::NodeId> kept;
  for (auto it = cut->order.rbegin(); it != cut->order.rend(); ++it) {
    const graph::Node& node = cut->node(*it);
    const bool used =
        std::any_of(node.results.begin(), node.results.end(), [&](graph::ValueId r) { return needed[r.index]; });
    if (!used) continue;
    if (ops::draws(node)) abort_capture(BreakKind::RandomNumbers, "a number read from random data");
    graph::Graph::for_each_value(node.args, [&](const graph::ValueId& v) { needed[v.index] = true; });
    kept.push_back(*it);
  }
  cut->order.assign(kept.rbegin(), kept.rend());
  return cut;
}

}  // namespace cresset::bridge
