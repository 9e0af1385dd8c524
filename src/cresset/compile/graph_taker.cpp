#include "compile/graph_taker.h"

#include <algorithm>
#include <unordered_set>

namespace cresset::driver {
namespace {

// Collects distinct ids in the order of their first occurrence.
template <class Id>
class Distinct {
 public:
  explicit Distinct(std::vector<Id>& out) : out_(out) {}
  void add(Id id) {
    if (seen_.insert(id).second) out_.push_back(id);
  }

 private:
  std::vector<Id>& out_;
  std::unordered_set<Id> seen_;
};

template <class F>
void for_each_expr(const graph::Node& node, F&& f) {
  for (const graph::Arg& arg : node.args) {
    if (const auto* e = std::get_if<graph::ExprId>(&arg)) f(*e);
    if (const auto* list = std::get_if<std::vector<graph::ExprId>>(&arg))
      for (const graph::ExprId e : *list) f(e);
  }
}

}  // namespace

Boundary boundary(const graph::Graph& graph) {
  Boundary out;
  Distinct<graph::ValueId> values(out.values), results(out.results);
  Distinct<graph::ExprId> symbols(out.symbols);
  std::vector<sym::VarId> variables;
  const auto add_result = [&](graph::ValueId v) {
    if (graph.value(v).kind == graph::Value::Kind::Result) results.add(v);
  };
  for (const graph::NodeId id : graph.order) {
    const graph::Node& node = graph.node(id);
    graph::Graph::for_each_value(node.args, [&](const graph::ValueId& v) {
      if (graph.value(v).kind != graph::Value::Kind::Result) values.add(v);
    });
    for_each_expr(node, [&](graph::ExprId e) { graph.pool().collect_vars(e, variables); });
    if (graph::op_name(node.op).starts_with("aten::as_strided"))  // counts in the strides of its first argument
      for (const graph::ExprId e : graph.type(std::get<graph::ValueId>(node.args.at(0))).strides)
        graph.pool().collect_vars(e, variables);
  }
  for (const sym::VarId var : variables) symbols.add(graph.pool().var(var));
  for (const graph::ValueId v : graph.outputs) add_result(v);
  for (const graph::Mutation& m : graph.mutations) add_result(m.value);
  return out;
}

void replace_nodes(graph::Graph& graph, std::string_view op, int64_t id, const Boundary& boundary) {
  graph.order.clear();
  std::vector<graph::OptionalValue> values(boundary.values.begin(), boundary.values.end());
  const graph::NodeId made =
      graph.add_node(graph::op_id(op), {graph.pool().constant(id), std::move(values), boundary.symbols}, {});
  graph.node(made).results = boundary.results;
  graph.node(made).through_aten = true;
  for (uint32_t i = 0; i < boundary.results.size(); ++i) {
    graph::Value& value = graph.value(boundary.results[i]);
    value.node = made;
    value.result = i;
  }
}

}  // namespace cresset::driver
