#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

#include "fuse/peak_order.h"
#include "ops/effects.h"

namespace cresset::fuse {
namespace {

// Returns the position of a unit in the graph: the position of its last value.
uint32_t position_of(const Graph& graph, const std::vector<uint32_t>& position, const Unit& unit) {
  if (unit.node.valid()) return position[unit.node.index];
  uint32_t last = 0;
  for (const Root& root : unit.group.roots) {
    const graph::NodeId into = graph.value(root.value).node;
    if (into.valid()) last = std::max(last, position[into.index]);
  }
  return last;
}

Dependences dependences_of(const Graph& graph, const std::vector<uint32_t>& position, const std::vector<Unit>& units) {
  std::unordered_map<ValueId, std::vector<uint32_t>> writers;
  for (uint32_t u = 0; u < units.size(); ++u)
    for (ValueId v : units[u].writes) writers[v].push_back(u);
  Dependences out{std::vector<std::vector<uint32_t>>(units.size()), std::vector<uint32_t>(units.size(), 0)};
  for (uint32_t u = 0; u < units.size(); ++u) {
    for (ValueId v : units[u].reads) {
      const auto it = writers.find(v);
      if (it == writers.end()) continue;
      for (uint32_t w : it->second)
        if (w != u) out.users[w].push_back(u), ++out.waits[u];
    }
  }
  std::vector<std::pair<uint32_t, uint32_t>> effects;  // position, unit
  for (uint32_t u = 0; u < units.size(); ++u)
    if (units[u].node.valid() && ops::has_effects(graph.node(units[u].node)))
      effects.emplace_back(position[units[u].node.index], u);
  std::sort(effects.begin(), effects.end());
  for (size_t i = 1; i < effects.size(); ++i)
    out.users[effects[i - 1].second].push_back(effects[i].second), ++out.waits[effects[i].second];
  return out;
}

// Returns the order of the graph, as far as the dependences allow.
std::vector<uint32_t> order_of_graph(const Dependences& dependences, const std::vector<uint32_t>& positions) {
  using Entry = std::pair<uint32_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<uint32_t> waits = dependences.waits, order;
  for (uint32_t u = 0; u < waits.size(); ++u)
    if (waits[u] == 0) ready.emplace(positions[u], u);
  while (!ready.empty()) {
    const uint32_t u = ready.top().second;
    ready.pop();
    order.push_back(u);
    for (uint32_t user : dependences.users[u])
      if (--waits[user] == 0) ready.emplace(positions[user], user);
  }
  CRESSET_CHECK(order.size() == waits.size(), "the units depend on each other in a circle");
  return order;
}

}  // namespace

void sort_units(const Graph& graph, Memory& memory, std::vector<Unit>& units) {
  std::vector<uint32_t> position(graph.node_count(), 0), positions;
  for (uint32_t i = 0; i < graph.order.size(); ++i) position[graph.order[i].index] = i;
  for (const Unit& unit : units) positions.push_back(position_of(graph, position, unit));
  const Dependences dependences = dependences_of(graph, position, units);
  const std::vector<uint32_t> order =
      order_of_least_peak(graph, memory, units, dependences, positions, order_of_graph(dependences, positions));
  std::vector<Unit> sorted;
  for (const uint32_t u : order) sorted.push_back(std::move(units[u]));
  units = std::move(sorted);
}

}  // namespace cresset::fuse
