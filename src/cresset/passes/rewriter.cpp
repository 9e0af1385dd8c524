#include "passes/rewriter.h"

#include <algorithm>
#include <array>

namespace cresset::passes {

void Replacements::apply_to_results(Graph& graph) const {
  for (ValueId& v : graph.outputs) v = resolve(v);
  for (graph::Mutation& m : graph.mutations) m.value = resolve(m.value);
}

ValueId memory_of(const Graph& graph, ValueId v) {
  while (graph.value(v).node.valid()) {
    const graph::Node& node = graph.node(graph.value(v).node);
    const ops::OpDef* def = ops::find(node.op);
    if (def == nullptr || def->op_class != ops::OpClass::View) break;
    v = std::get<ValueId>(node.args[0]);
  }
  return v;
}

Escaping::Escaping(const Graph& graph) : graph_(graph) {
  for (ValueId v : graph.outputs) memory_.insert(memory_of(graph, v));
}

bool Escaping::forbids(ValueId from, ValueId to) const {
  const ValueId a = memory_of(graph_, from), b = memory_of(graph_, to);
  if (a == b || memory_.count(a) == 0) return false;
  return memory_.count(b) != 0 || graph_.value(b).kind != graph::Value::Kind::Result;
}

void Escaping::replaced(ValueId from, ValueId to) {
  if (memory_.count(from) != 0) memory_.insert(memory_of(graph_, to));
}

bool has_effects(const graph::Node& node) {
  static constexpr std::array<std::string_view, 24> kPrefixes = {"aten::rand",
                                                                 "aten::bernoulli",
                                                                 "aten::normal",
                                                                 "aten::uniform",
                                                                 "aten::dropout",
                                                                 "aten::native_dropout",
                                                                 "aten::multinomial",
                                                                 "aten::poisson",
                                                                 "aten::exponential",
                                                                 "aten::geometric",
                                                                 "aten::log_normal",
                                                                 "aten::cauchy",
                                                                 "aten::random",
                                                                 "aten::_fused_dropout",
                                                                 "aten::rrelu",
                                                                 "aten::binomial",
                                                                 "aten::_standard_gamma",
                                                                 "aten::_sample_dirichlet",
                                                                 "aten::_assert",
                                                                 "aten::sym_constrain",
                                                                 "aten::alpha_dropout",
                                                                 "aten::feature_dropout",
                                                                 "aten::_scaled_dot_product_flash",
                                                                 "prim::random"};
  if (node.results.empty()) return true;
  const std::string_view name = graph::op_name(node.op);
  if (!name.starts_with("aten::") && !name.starts_with("prim::")) return ops::find(node.op) == nullptr;
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view p) { return name.starts_with(p); });
}

}  // namespace cresset::passes
