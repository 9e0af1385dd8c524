#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

#include "fuse/plan.h"
#include "ops/effects.h"

namespace cresset::fuse {
namespace {

// Where a unit stands in the graph: at the last of its values.
uint32_t position_of(const Graph& graph, const std::vector<uint32_t>& position, const Unit& unit) {
  if (unit.node.valid()) return position[unit.node.index];
  uint32_t last = 0;
  for (const Root& root : unit.group.roots) {
    const graph::NodeId into = graph.value(root.value).node;
    if (into.valid()) last = std::max(last, position[into.index]);
  }
  return last;
}

}  // namespace

void sort_units(const Graph& graph, std::vector<Unit>& units) {
  std::vector<uint32_t> position(graph.node_count(), 0);
  for (uint32_t i = 0; i < graph.order.size(); ++i) position[graph.order[i].index] = i;
  std::unordered_map<ValueId, std::vector<uint32_t>> writers;
  for (uint32_t u = 0; u < units.size(); ++u)
    for (ValueId v : units[u].writes) writers[v].push_back(u);
  std::vector<std::vector<uint32_t>> users(units.size());
  std::vector<uint32_t> waits(units.size(), 0);
  for (uint32_t u = 0; u < units.size(); ++u) {
    for (ValueId v : units[u].reads) {
      const auto it = writers.find(v);
      if (it == writers.end()) continue;
      for (uint32_t w : it->second)
        if (w != u) users[w].push_back(u), ++waits[u];
    }
  }
  std::vector<std::pair<uint32_t, uint32_t>> effects;  // position, unit
  for (uint32_t u = 0; u < units.size(); ++u)
    if (units[u].node.valid() && ops::has_effects(graph.node(units[u].node)))
      effects.emplace_back(position[units[u].node.index], u);
  std::sort(effects.begin(), effects.end());
  for (size_t i = 1; i < effects.size(); ++i)
    users[effects[i - 1].second].push_back(effects[i].second), ++waits[effects[i].second];
  using Entry = std::pair<uint32_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (uint32_t u = 0; u < units.size(); ++u)
    if (waits[u] == 0) ready.emplace(position_of(graph, position, units[u]), u);
  std::vector<Unit> sorted;
  while (!ready.empty()) {
    const uint32_t u = ready.top().second;
    ready.pop();
    for (uint32_t user : users[u])
      if (--waits[user] == 0) ready.emplace(position_of(graph, position, units[user]), user);
    sorted.push_back(std::move(units[u]));
  }
  CRESSET_CHECK(sorted.size() == units.size(), "the units depend on each other in a circle");
  units = std::move(sorted);
}

}  // namespace cresset::fuse
