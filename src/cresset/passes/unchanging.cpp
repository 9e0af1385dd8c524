#include "passes/unchanging.h"

#include <algorithm>

#include "base/device_traits.h"

namespace cresset::passes {
namespace {

bool are_numbers(const sym::ExprPool& pool, const std::vector<sym::ExprId>& list) {
  return std::all_of(list.begin(), list.end(), [&](sym::ExprId e) { return pool.is_const(e); });
}

bool has_known_sizes(const Graph& graph, ValueId v) {
  const graph::TensorType& type = graph.type(v);
  return traits_of(type.device.kind).lays_out_weights && are_numbers(graph.pool(), type.sizes) &&
         are_numbers(graph.pool(), type.strides);
}

}  // namespace

Unchanging::Unchanging(const Graph& graph, const std::vector<bool>& fixed) : graph_(graph) {
  for (size_t i = 0; i < graph.constants.size(); ++i) {
    const ValueId v = graph.constants[i];
    if (!fixed[i] || !has_known_sizes(graph, v)) continue;
    known_[v] = {.elements_read = graph.pool().const_value(graph::numel(graph.pool(), graph.type(v).sizes))};
  }
  for (const NodeId id : graph.order) note(id);
}

bool Unchanging::has_numbers_alone(const graph::Node& node) const {
  return std::all_of(node.args.begin(), node.args.end(), [&](const graph::Arg& arg) {
    if (const auto* e = std::get_if<sym::ExprId>(&arg)) return graph_.pool().is_const(*e);
    const auto* list = std::get_if<std::vector<sym::ExprId>>(&arg);
    return list == nullptr || are_numbers(graph_.pool(), *list);
  });
}

void Unchanging::note(NodeId id) {
  const graph::Node& node = graph_.node(id);
  if (has_effects(node) || node.caught || !has_numbers_alone(node)) return;
  const ops::OpDef* def = ops::find(node.op);
  Facts facts;
  facts.pointwise = def != nullptr && (def->op_class == ops::OpClass::Pointwise || def->op_class == ops::OpClass::View);
  bool same = true;
  Graph::for_each_value(node.args, [&](ValueId v) {
    const auto found = known_.find(v);
    same = same && found != known_.end();
    if (!same) return;
    facts.elements_read += found->second.elements_read;
    facts.pointwise = facts.pointwise && found->second.pointwise;
  });
  const auto known_sizes = [&](ValueId v) { return has_known_sizes(graph_, v); };
  if (!same || !std::all_of(node.results.begin(), node.results.end(), known_sizes)) return;
  for (const ValueId v : node.results) known_[v] = facts;
}

}  // namespace cresset::passes
