#include "bridge/autograd/saved_tensor_use.h"

#include <algorithm>
#include <unordered_map>

namespace cresset::bridge {
namespace {

using graph::ValueId;
using Used = std::vector<bool>;  // empty: none

void add(Used& to, const Used& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i]) to[i] = true;
}

// The tangents and saved values which each value depends on.
class Parts {
 public:
  Parts(const graph::Graph& program, const std::vector<ValueId>& tangents, const std::vector<ValueId>& saved)
      : program_(program) {
    for (size_t i = 0; i < saved.size(); ++i) mark(saved_[saved[i]], i, saved.size());
    for (size_t i = 0; i < tangents.size(); ++i) mark(tangents_[tangents[i]], i, tangents.size());
    for (const graph::NodeId id : program.order) follow(program.node(id));
  }

  // For each value which depends on the tangent: the saved values read on the way to it.
  std::unordered_map<ValueId, Used> read_from(size_t tangent) const {
    std::unordered_map<ValueId, Used> read;
    for (const graph::NodeId id : program_.order) {
      const graph::Node& node = program_.node(id);
      if (node.results.empty() || !holds(tangents_, node.results.front(), tangent)) continue;
      Used here;
      graph::Graph::for_each_value(node.args, [&](const ValueId& v) {
        if (const auto on_the_way = read.find(v); on_the_way != read.end()) return add(here, on_the_way->second);
        if (!tangents_.contains(v) && saved_.contains(v)) add(here, saved_.at(v));
      });
      for (const ValueId v : node.results) read[v] = here;
    }
    return read;
  }

 private:
  static void mark(Used& bits, size_t i, size_t count) {
    bits.resize(count);
    bits[i] = true;
  }
  static bool holds(const std::unordered_map<ValueId, Used>& table, ValueId v, size_t i) {
    const auto found = table.find(v);
    return found != table.end() && i < found->second.size() && found->second[i];
  }
  void follow(const graph::Node& node) {
    Used tangents, saved;
    graph::Graph::for_each_value(node.args, [&](const ValueId& v) {
      if (const auto found = tangents_.find(v); found != tangents_.end()) add(tangents, found->second);
      if (const auto found = saved_.find(v); found != saved_.end()) add(saved, found->second);
    });
    for (const ValueId v : node.results) {
      if (!tangents.empty()) tangents_[v] = tangents;
      if (!saved.empty()) saved_[v] = saved;
    }
  }

  const graph::Graph& program_;
  std::unordered_map<ValueId, Used> tangents_, saved_;
};

}  // namespace

SavedUse::SavedUse(const graph::Graph& program, const Backward& backward, const std::vector<ValueId>& saved)
    : groups_(backward.groups.size()), rows_(backward.tangents.size() * groups_, Used(saved.size())) {
  const Parts parts(program, backward.tangents, saved);
  for (size_t root = 0; groups_ != 0 && root < backward.tangents.size(); ++root) {
    const std::unordered_map<ValueId, Used> read = parts.read_from(root);
    for (size_t g = 0; g < groups_; ++g)
      for (const uint32_t leaf : backward.groups[g].leaves) {
        const OutputSpec& gradient = backward.gradients[leaf];
        if (gradient.kind != OutputSpec::Kind::GraphOutput) continue;
        const auto found = read.find(program.outputs[gradient.position]);
        if (found != read.end()) add(rows_[root * groups_ + g], found->second);
      }
  }
}

}  // namespace cresset::bridge
