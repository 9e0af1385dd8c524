#include "passes/partition.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <unordered_set>

#include "passes/rewriter.h"

namespace cresset::passes {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 4;

// Maximum flow in a network with integer capacities.
class Network {
 public:
  explicit Network(size_t vertices) : first_(vertices) {}

  void add(uint32_t from, uint32_t to, int64_t capacity) {
    first_[from].push_back(static_cast<uint32_t>(edges_.size()));
    edges_.push_back({to, capacity});
    first_[to].push_back(static_cast<uint32_t>(edges_.size()));
    edges_.push_back({from, 0});
  }

  // Returns the vertices which can still reach the sink after the maximum flow was sent.
  std::vector<bool> sink_side(uint32_t source, uint32_t sink) {
    while (find_levels(source, sink)) {
      next_.assign(first_.size(), 0);
      while (send(source, sink) > 0) {
      }
    }
    std::vector<bool> reaches(first_.size(), false);
    std::queue<uint32_t> left({sink});
    reaches[sink] = true;
    for (; !left.empty(); left.pop())
      for (const uint32_t e : first_[left.front()])  // the twin of edge e leads to this vertex
        if (edges_[e ^ 1].capacity > 0 && !reaches[edges_[e].to]) {
          reaches[edges_[e].to] = true;
          left.push(edges_[e].to);
        }
    return reaches;
  }

 private:
  struct Edge {
    uint32_t to;
    int64_t capacity;
  };

  bool find_levels(uint32_t source, uint32_t sink) {
    level_.assign(first_.size(), -1);
    level_[source] = 0;
    std::queue<uint32_t> left({source});
    for (; !left.empty(); left.pop())
      for (const uint32_t e : first_[left.front()])
        if (edges_[e].capacity > 0 && level_[edges_[e].to] < 0) {
          level_[edges_[e].to] = level_[left.front()] + 1;
          left.push(edges_[e].to);
        }
    return level_[sink] >= 0;
  }

  // Sends flow along a path of rising levels. No recursion, since chains of pointwise operators may be long.
  int64_t send(uint32_t source, uint32_t sink) {
    std::vector<uint32_t> path;
    uint32_t at = source;
    while (at != sink) {
      uint32_t& next = next_[at];
      while (next < first_[at].size()) {
        const Edge& e = edges_[first_[at][next]];
        if (e.capacity > 0 && level_[e.to] == level_[at] + 1) break;
        ++next;
      }
      if (next < first_[at].size()) {
        path.push_back(first_[at][next]);
        at = edges_[path.back()].to;
        continue;
      }
      if (path.empty()) return 0;
      at = edges_[path.back() ^ 1].to;
      ++next_[at];
      path.pop_back();
    }
    int64_t amount = kUnlimited;
    for (const uint32_t e : path) amount = std::min(amount, edges_[e].capacity);
    for (const uint32_t e : path) {
      edges_[e].capacity -= amount;
      edges_[e ^ 1].capacity += amount;
    }
    return amount;
  }

  std::vector<Edge> edges_;  // an edge and its twin are adjacent
  std::vector<std::vector<uint32_t>> first_;
  std::vector<int> level_;
  std::vector<uint32_t> next_;
};

// x.clone() of a value of the caller, made so that x may be written to before the backward pass.
bool is_kept_apart(const Graph& graph, const graph::Node& node) {
  static const graph::OpId clone = graph::op_id("aten::clone");
  if (node.op != clone) return false;
  return graph.value(std::get<ValueId>(node.args[0])).kind != graph::Value::Kind::Result;
}

bool is_cheap(const Graph& graph, ValueId v) {
  const graph::Value& value = graph.value(v);
  if (value.kind != graph::Value::Kind::Result) return false;
  const graph::Node& node = graph.node(value.node);
  if (node.through_aten || has_effects(node) || is_kept_apart(graph, node)) return false;
  const ops::OpDef* def = ops::find(node.op);
  return def != nullptr && (def->op_class == ops::OpClass::Pointwise || def->op_class == ops::OpClass::View);
}

int64_t cost_of_saving(const Graph& graph, ValueId v, bool is_output, bool is_changing) {
  const graph::Value& value = graph.value(v);
  if (value.kind != graph::Value::Kind::Result && !is_changing) return 1;  // it exists anyway
  constexpr int64_t kUnknown = 8192;                                       // elements, where the size is data-dependent
  constexpr int64_t kMost = int64_t{1} << 40;
  const int64_t elements = graph.env().typical_or(graph::numel(graph.pool(), value.type.sizes), kUnknown);
  const int64_t bytes = std::clamp(elements, int64_t{1}, kMost) * static_cast<int64_t>(byte_size(value.type.dtype));
  if (is_output && !is_changing) return 1 + bytes / 16;
  if (is_changing) return 16 + bytes;
  const ops::OpDef* def = ops::find(graph.node(value.node).op);
  const bool is_view = def != nullptr && def->op_class == ops::OpClass::View;
  return 16 + (is_view ? 2 : 1) * bytes;  // a view would be copied into separate memory
}

}  // namespace

Partition partition(const Graph& graph, std::span<const ValueId> needed, const std::unordered_set<ValueId>& changing) {
  // Two vertices for each value: the value exists, and the value may be used. The capacity between them is the cost of
  // saving.
  std::unordered_set<ValueId> seen;
  std::vector<ValueId> values;
  const auto visit = [&](ValueId v) {
    if (seen.insert(v).second) values.push_back(v);
  };
  for (const ValueId v : needed) visit(v);
  for (size_t i = 0; i < values.size(); ++i)
    if (is_cheap(graph, values[i]))
      Graph::for_each_value(graph.node(graph.value(values[i]).node).args, [&](const ValueId& a) { visit(a); });

  std::vector<uint32_t> place(graph.value_count(), 0);
  for (uint32_t i = 0; i < values.size(); ++i) place[values[i].index] = 2 * i;
  const auto source = static_cast<uint32_t>(2 * values.size()), sink = source + 1;
  Network network(2 * values.size() + 2);
  const std::unordered_set<ValueId> outputs(graph.outputs.begin(), graph.outputs.end());
  for (const ValueId v : values) {
    const uint32_t there = place[v.index], used = there + 1;
    network.add(there, used, cost_of_saving(graph, v, outputs.contains(v), changing.contains(v)));
    if (is_cheap(graph, v))  // a value without arguments is always recomputed
      Graph::for_each_value(graph.node(graph.value(v).node).args,
                            [&](const ValueId& a) { network.add(place[a.index] + 1, there, kUnlimited); });
    else
      network.add(source, there, kUnlimited);
  }
  for (const ValueId v : needed) network.add(place[v.index] + 1, sink, kUnlimited);

  const std::vector<bool> backward = network.sink_side(source, sink);
  Partition out;
  std::unordered_set<graph::NodeId> again;
  std::sort(values.begin(), values.end(), [](ValueId a, ValueId b) { return a.index < b.index; });
  for (const ValueId v : values) {
    const bool used = backward[place[v.index] + 1], made = backward[place[v.index]];
    if (used && made && is_cheap(graph, v)) again.insert(graph.value(v).node);
    if (used && !made) out.saved.push_back(v);
  }
  for (const NodeId id : graph.order)
    if (again.contains(id)) out.recomputed.push_back(id);
  return out;
}

}  // namespace cresset::passes
