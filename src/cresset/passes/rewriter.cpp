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

}  // namespace cresset::passes
