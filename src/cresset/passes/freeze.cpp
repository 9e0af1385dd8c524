#include "passes/freeze.h"

#include <fmt/format.h>

#include <algorithm>

#include "passes/passes.h"
#include "passes/unchanging.h"

namespace cresset::passes {
namespace {

// A pointwise result larger than its inputs by this factor is computed again where it is read. A mask of a sequence's
// positions is cheaper to compute than to load.
constexpr int64_t kMostGrowth = 4;

class Split {
 public:
  Split(Graph& graph, const std::vector<bool>& fixed) : graph_(graph), unchanging_(graph, fixed) {
    const auto pin = [&](ValueId v) { pinned_.insert(memory_of(graph, v)); };
    for (const ValueId v : graph.outputs) pin(v);  // the caller gets separate memory
    for (const graph::Mutation& m : graph.mutations) pin(m.value);
  }

  std::unique_ptr<Graph> run() {
    for (const NodeId id : graph_.order) {
      const std::vector<ValueId>& results = graph_.node(id).results;
      if (results.empty() || !unchanging_.contains(results[0])) need_arguments(id);
    }
    for (const ValueId v : graph_.outputs) need(v);
    for (const graph::Mutation& m : graph_.mutations) need(m.value);
    if (held_.empty()) return nullptr;
    std::unique_ptr<Graph> apart = copy();
    hold();
    return apart;
  }

 private:
  void need_arguments(NodeId id) {
    Graph::for_each_value(graph_.node(id).args, [&](ValueId v) { need(v); });
  }

  // Called when a remaining node reads `v`.
  void need(ValueId v) {
    if (!unchanging_.contains(v) || !graph_.value(v).node.valid() || !needed_.insert(v).second) return;
    if (stays(v))
      need_arguments(graph_.value(v).node);
    else
      held_.push_back(v);
  }

  bool stays(ValueId v) const {
    const ops::OpDef* def = ops::find(graph_.node(graph_.value(v).node).op);
    if (def != nullptr && def->op_class == ops::OpClass::View) return true;
    const int64_t read = unchanging_.elements_read(v);
    if (read == 0 || pinned_.contains(memory_of(graph_, v))) return true;
    const sym::ExprPool& pool = graph_.pool();
    return unchanging_.is_pointwise(v) &&
           pool.const_value(graph::numel(graph_.pool(), graph_.type(v).sizes)) > kMostGrowth * read;
  }

  // Copies the nodes which compute the held values.
  std::unique_ptr<Graph> copy() const {
    auto apart = std::make_unique<Graph>(graph_.env_ptr());
    std::unordered_map<ValueId, ValueId> copies;
    for (const ValueId c : graph_.constants) copies[c] = apart->add_constant(graph_.type(c), graph_.value(c).name);
    std::unordered_set<ValueId> wanted(held_.begin(), held_.end());
    std::vector<NodeId> nodes;
    for (auto id = graph_.order.rbegin(); id != graph_.order.rend(); ++id) {
      const graph::Node& node = graph_.node(*id);
      if (std::none_of(node.results.begin(), node.results.end(), [&](ValueId v) { return wanted.contains(v); }))
        continue;
      nodes.push_back(*id);
      Graph::for_each_value(node.args, [&](ValueId v) { wanted.insert(v); });
    }
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
      const graph::Node& node = graph_.node(*id);
      std::vector<graph::Arg> args = node.args;
      Graph::for_each_value(args, [&](ValueId& v) { v = copies.at(v); });
      std::vector<graph::TensorType> types;
      for (const ValueId v : node.results) types.push_back(graph_.type(v));
      apart->current_location = apart->add_location(graph_.locations[node.location]);
      const NodeId made = apart->add_node(node.op, std::move(args), std::move(types));
      apart->node(made).through_aten = node.through_aten;
      for (size_t r = 0; r < node.results.size(); ++r) copies[node.results[r]] = apart->node(made).results[r];
    }
    for (const ValueId v : held_) apart->outputs.push_back(copies.at(v));
    return apart;
  }

  // Replaces the held values by constants.
  void hold() {
    Replacements replacements;
    for (const ValueId v : held_)
      replacements.add(v, graph_.add_constant(graph_.type(v), fmt::format("frozen {}", graph_.constants.size())));
    for (const NodeId id : graph_.order) replacements.apply(graph_.node(id).args);
    replacements.apply_to_results(graph_);
    dead_code(graph_);
  }

  Graph& graph_;
  const Unchanging unchanging_;
  std::unordered_set<ValueId> pinned_;  // memory
  std::unordered_set<ValueId> needed_;
  std::vector<ValueId> held_;
};

}  // namespace

std::unique_ptr<Graph> split_unchanging(Graph& graph, const std::vector<bool>& fixed) {
  return Split(graph, fixed).run();
}

std::unique_ptr<Graph> freeze(Graph& graph, const std::vector<bool>& fixed, const driver::Options& options) {
  clean(graph, options);
  if (!options.eager_rounding && scale_weights(graph, fixed)) clean(graph, options);
  return split_unchanging(graph, fixed);
}

}  // namespace cresset::passes
