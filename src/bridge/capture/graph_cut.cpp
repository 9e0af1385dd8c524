#include "bridge/capture/graph_cut.h"

#include <algorithm>

#include "bridge/aten/op_schema.h"
#include "bridge/capture/capture_abort.h"

namespace cresset::bridge {

bool is_random(graph::OpId op) {
  const std::optional<c10::OperatorHandle> handle = find_operator(op);
  return handle && handle->hasSchema() && handle->getTags().size() > 0 &&
         std::find(handle->getTags().begin(), handle->getTags().end(), at::Tag::nondeterministic_seeded) !=
             handle->getTags().end();
}

bool draws_again(const graph::Node& node) {
  if (!is_random(node.op)) return false;
  const std::optional<int> dropout = find_operator(node.op)->schema().argumentIndexWithName("dropout_p");
  if (!dropout) return true;
  const auto* p = std::get_if<double>(&node.args.at(static_cast<size_t>(*dropout)));
  return p == nullptr || *p != 0;
}

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
    if (is_random(node.op)) abort_capture(BreakKind::RandomNumbers, "a number read from random data");
    graph::Graph::for_each_value(node.args, [&](const graph::ValueId& v) { needed[v.index] = true; });
    kept.push_back(*it);
  }
  cut->order.assign(kept.rbegin(), kept.rend());
  return cut;
}

}  // namespace cresset::bridge
