// Utilities of the passes: replacing values, and the values which leave the graph.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "graph/graph.h"
#include "ops/effects.h"
#include "ops/op_def.h"

namespace cresset::passes {

using graph::Graph;
using graph::NodeId;
using graph::ValueId;

// Whether the types permit one value to replace the other.
inline bool same_type(const graph::TensorType& a, const graph::TensorType& b) {
  return a.dtype == b.dtype && a.device == b.device && a.sizes == b.sizes && a.strides == b.strides;
}

// Replacements of values. Chains are followed.
class Replacements {
 public:
  void add(ValueId from, ValueId to) { map_[from] = to; }
  bool empty() const { return map_.empty(); }
  ValueId resolve(ValueId v) const {
    for (auto it = map_.find(v); it != map_.end(); it = map_.find(v)) v = it->second;
    return v;
  }
  void apply(std::vector<graph::Arg>& args) const {
    Graph::for_each_value(args, [&](ValueId& v) { v = resolve(v); });
  }
  // Applied to the graph's outputs and mutations. The caller applies replacements to nodes, since it visits them
  // anyway.
  void apply_to_results(Graph& graph) const;

 private:
  std::unordered_map<ValueId, ValueId> map_;
};

// The value which owns the memory at the end of a chain of views.
ValueId memory_of(const Graph& graph, ValueId v);

// Values whose memory is given to the caller. Two of them must stay separate, and none may become an input.
class Escaping {
 public:
  explicit Escaping(const Graph& graph);
  // Whether the caller could observe the replacement of `from` by `to`.
  bool forbids(ValueId from, ValueId to) const;
  void replaced(ValueId from, ValueId to);

 private:
  const Graph& graph_;
  std::unordered_set<ValueId> memory_;
};

using ops::has_effects;
using ops::is_number;

// A pass over nodes: visit(node) may add to `replacements`; arguments are already replaced when a node is visited.
template <class Visit>
bool rewrite_nodes(Graph& graph, Visit&& visit) {
  Replacements replacements;
  for (NodeId id : graph.order) {
    if (!replacements.empty()) replacements.apply(graph.node(id).args);
    visit(id, replacements);
  }
  replacements.apply_to_results(graph);
  return !replacements.empty();
}

}  // namespace cresset::passes
