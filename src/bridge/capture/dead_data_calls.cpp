#include "bridge/capture/dead_data_calls.h"

#include <algorithm>
#include <unordered_set>

#include "bridge/capture/data_dependent_errors.h"
#include "ops/effects.h"

namespace cresset::bridge {
namespace {

using graph::ValueId;

// Walks from the wanted values to their operands.
class Needs {
 public:
  Needs(graph::Graph& graph, std::vector<DataDependentCall>& calls, const std::vector<SymbolBinding>& symbols)
      : graph_(graph), calls_(calls), symbols_(symbols), wanted_calls_(calls.size()) {}

  void want(sym::ExprId e) {
    std::vector<sym::VarId> vars;
    graph_.pool().collect_vars(e, vars);
    for (const sym::VarId var : vars)
      for (const SymbolBinding& s : symbols_)
        if (s.var == var && (s.source.kind == runtime::SymbolSource::Kind::InputSize ||
                             s.source.kind == runtime::SymbolSource::Kind::Element))
          want_input(s.source.position);
  }
  void want(ValueId value) {
    if (!values_.insert(value).second) return;
    const graph::TensorType& type = graph_.type(value);
    for (const auto* list : {&type.sizes, &type.strides})
      for (const sym::ExprId e : *list) want(e);
    const graph::Value& v = graph_.value(value);
    if (v.kind == graph::Value::Kind::Input) want_input(v.result);
    if (v.kind == graph::Value::Kind::Result) want(graph_.node(v.node).args);
  }
  void want(const DataDependentCall& call) { want_input(call.made.at(0)); }
  bool wants(size_t call) const { return wanted_calls_[call]; }
  bool wants(const graph::Node& node) const {
    return std::any_of(node.results.begin(), node.results.end(), [&](ValueId r) { return values_.contains(r); });
  }

 private:
  void want_input(uint32_t position) {
    for (size_t i = 0; i < calls_.size(); ++i) {
      const std::vector<uint32_t>& made = calls_[i].made;
      if (wanted_calls_[i] || std::find(made.begin(), made.end(), position) == made.end()) continue;
      wanted_calls_[i] = true;
      want(calls_[i].args);
      for (const Subgraph& part : calls_[i].parts) want(part);
    }
  }
  void want(const Subgraph& part) {
    for (const graph::NodeId id : part.order)
      for (const ValueId v : graph_.node(id).results) want(v);
    for (const DataDependentCall& call : part.calls) {
      want(call.args);
      for (const Subgraph& inner : call.parts) want(inner);
    }
  }
  void want(const std::vector<graph::Arg>& args) {
    graph::Graph::for_each_value(args, [&](const ValueId& v) { want(v); });
    for (const graph::Arg& arg : args) {
      if (const auto* e = std::get_if<sym::ExprId>(&arg)) want(*e);
      if (const auto* list = std::get_if<std::vector<sym::ExprId>>(&arg))
        for (const sym::ExprId e : *list) want(e);
    }
  }

  graph::Graph& graph_;
  const std::vector<DataDependentCall>& calls_;
  const std::vector<SymbolBinding>& symbols_;
  std::vector<bool> wanted_calls_;
  std::unordered_set<ValueId> values_;
};

// Removes unneeded nodes from the order. Returns for each position the number of remaining nodes before it.
std::vector<size_t> keep_wanted(const graph::Graph& graph, const Needs& needs, std::vector<graph::NodeId>& order) {
  std::vector<graph::NodeId> kept;
  std::vector<size_t> stay_before(order.size() + 1, 0);
  for (size_t i = 0; i < order.size(); ++i) {
    stay_before[i] = kept.size();
    if (needs.wants(graph.node(order[i]))) kept.push_back(order[i]);
  }
  stay_before.back() = kept.size();
  order = std::move(kept);
  return stay_before;
}

void keep_wanted(const Needs& needs, const std::vector<size_t>& stay_before, std::vector<DataDependentCall>& calls) {
  std::vector<DataDependentCall> stay;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!needs.wants(i)) continue;
    calls[i].position = stay_before[calls[i].position];
    stay.push_back(std::move(calls[i]));
  }
  calls = std::move(stay);
}

}  // namespace

void drop_unused(graph::Graph& graph, Subgraph& part, const std::vector<SymbolBinding>& symbols,
                 const std::vector<sym::ExprId>& kept) {
  Needs needs(graph, part.calls, symbols);
  for (const sym::ExprId e : kept) needs.want(e);
  for (const graph::NodeId id : part.order)
    if (ops::draws(graph.node(id))) needs.want(graph.node(id).results.at(0));
  for (const ValueId v : part.outputs) needs.want(v);
  keep_wanted(needs, keep_wanted(graph, needs, part.order), part.calls);
}

void drop_unused_calls(graph::Graph& graph, std::vector<DataDependentCall>& calls,
                       const std::vector<SymbolBinding>& symbols, size_t real_inputs, std::vector<sym::ExprId> kept) {
  Needs needs(graph, calls, symbols);
  for (const sym::RuntimeAssertion& assertion : graph.env().assertions()) kept.push_back(assertion.condition);
  for (const sym::ExprId e : kept) needs.want(e);
  for (const graph::NodeId id : graph.order)  // random numbers are drawn as often as in eager mode
    if (ops::draws(graph.node(id))) needs.want(graph.node(id).results.at(0));
  for (const ValueId v : graph.outputs) needs.want(v);
  for (const graph::Mutation& m : graph.mutations) needs.want(m.value);
  for (size_t i = 0; i < calls.size(); ++i)
    if (has_known_cause(calls[i].op) && may_raise(graph, calls[i].op, calls[i].args)) needs.want(calls[i]);
  for (const graph::NodeId id : graph.order)
    if (graph.node(id).caught && !graph.node(id).results.empty()) needs.want(graph.node(id).results[0]);
  bool all = true;
  for (size_t i = 0; i < calls.size(); ++i) all = all && needs.wants(i);
  if (all) return;
  // Nodes which depend on a removed call must go, too; positions count the remaining nodes.
  keep_wanted(needs, keep_wanted(graph, needs, graph.order), calls);
  if (calls.empty()) graph.inputs.resize(real_inputs);
}

}  // namespace cresset::bridge
