#include <array>

#include "ops/op_def.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cresset::passes {
namespace {

using graph::Arg;
using graph::Node;
using graph::TensorType;

bool no_memory_format(const Arg& arg) {
  const auto* format = std::get_if<graph::MemoryFormat>(&arg);
  return format == nullptr || *format == graph::MemoryFormat::Preserve;
}

// A test returns whether the node's result equals its first argument, element by element. The caller compares the
// types.
using Test = bool (*)(const Graph&, const Node&);

bool second_is_one(const Graph& graph, const Node& node) { return is_number(graph, node.args[1], 1); }
// x - 0 is x. x + 0 is not x for x = -0, so the rule for addition covers only integers.
bool second_is_zero(const Graph& graph, const Node& node) { return is_number(graph, node.args[1], 0); }
bool adds_integer_zero(const Graph& graph, const Node& node) {
  return second_is_zero(graph, node) && is_integral(graph.type(node.results[0]).dtype);
}
bool always(const Graph&, const Node&) { return true; }
bool keeps_format(const Graph&, const Node& node) { return no_memory_format(node.args.back()); }
bool is_identity_permutation(const Graph& graph, const Node& node) {
  const auto& dims = std::get<std::vector<sym::ExprId>>(node.args[1]);
  for (size_t d = 0; d < dims.size(); ++d)
    if (!graph.pool().is_const(dims[d], static_cast<int64_t>(d))) return false;
  return true;
}
bool step_is_one(const Graph& graph, const Node& node) { return is_number(graph, node.args[4], 1); }

struct Row {
  std::string_view op;
  Test test;
};
constexpr std::array kRows = {
    Row{"aten::mul.Tensor", second_is_one},
    Row{"aten::mul.Scalar", second_is_one},
    Row{"aten::div.Tensor", second_is_one},
    Row{"aten::div.Scalar", second_is_one},
    Row{"aten::add.Tensor", adds_integer_zero},
    Row{"aten::add.Scalar", adds_integer_zero},
    Row{"aten::sub.Tensor", second_is_zero},
    Row{"aten::sub.Scalar", second_is_zero},
    Row{"aten::clone", keeps_format},
    Row{"aten::_to_copy", keeps_format},
    Row{"aten::detach", always},
    Row{"aten::alias", always},
    Row{"aten::lift_fresh", always},
    Row{"aten::expand", always},
    Row{"aten::view", always},
    Row{"aten::reshape", always},
    Row{"aten::_unsafe_view", always},
    Row{"aten::permute", is_identity_permutation},
    Row{"aten::slice.Tensor", step_is_one},
};

Test find_test(graph::OpId op) {
  static const std::unordered_map<graph::OpId, Test> table = [] {
    std::unordered_map<graph::OpId, Test> t;
    for (const Row& row : kRows) t.emplace(graph::op_id(row.op), row.test);
    return t;
  }();
  const auto it = table.find(op);
  return it == table.end() ? nullptr : it->second;
}

// An operator without an OpDef may return its argument's memory (aten::view_as_real, aten::view.dtype). Copies of its
// result must stay copies.
bool may_be_view(const Graph& graph, ValueId value) {
  const graph::Value& made = graph.value(value);
  return made.kind == graph::Value::Kind::Result && ops::find(graph.node(made.node).op) == nullptr;
}

}  // namespace

bool remove_no_ops(Graph& graph) {
  Escaping escaping(graph);
  const bool changed = rewrite_nodes(graph, [&](NodeId id, Replacements& replacements) {
    const Node& node = graph.node(id);
    const Test test = find_test(node.op);
    if (test == nullptr || node.args.empty() || !std::holds_alternative<ValueId>(node.args[0])) return;
    const ValueId from = std::get<ValueId>(node.args[0]), to = node.results[0];
    if (!same_type(graph.type(from), graph.type(to)) || !test(graph, node)) return;
    if (may_be_view(graph, from) || escaping.forbids(to, from)) return;
    replacements.add(to, from);
    escaping.replaced(to, from);
  });
  if (changed) dead_code(graph);
  return changed;
}

}  // namespace cresset::passes
