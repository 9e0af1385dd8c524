// Attention with keys and values that were repeated for groups of queries (repeat_kv, repeat_interleave): the kernels
// of a GPU read the rows of a group from one place, so the copies are left out.
#include <array>

#include "ops/context.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cresset::passes {
namespace {

// Argument positions of cresset::attention.
enum Argument : size_t { kQuery, kKey, kValue, kGrouped = 6 };

const graph::Node* node_of(const Graph& graph, ValueId v, std::initializer_list<graph::OpId> ops) {
  if (!graph.value(v).node.valid()) return nullptr;
  const graph::Node& node = graph.node(graph.value(v).node);
  return std::find(ops.begin(), ops.end(), node.op) == ops.end() ? nullptr : &node;
}

ValueId without_copies(const Graph& graph, ValueId v) {
  static const graph::OpId clone = graph::op_id("aten::clone");
  while (const graph::Node* node = node_of(graph, v, {clone})) v = std::get<ValueId>(node->args[0]);
  return v;
}

struct Repeated {
  ValueId line;  // [batch, heads, 1, length, features]
  sym::ExprId times;
};

// Of [batch, heads * times, length, features].
std::optional<Repeated> repeated(Graph& graph, ValueId v) {
  static const graph::OpId view = graph::op_id("aten::view"), unsafe_view = graph::op_id("aten::_unsafe_view"),
                           alias = graph::op_id("aten::_reshape_alias"), expand = graph::op_id("aten::expand");
  const graph::Node* const joined = node_of(graph, without_copies(graph, v), {view, unsafe_view, alias});
  if (joined == nullptr) return std::nullopt;
  const auto& to = graph.type(joined->results[0]).sizes;
  const ValueId apart = without_copies(graph, std::get<ValueId>(joined->args[0]));
  const graph::Node* const expanded = node_of(graph, apart, {expand});
  if (expanded == nullptr || to.size() != 4) return std::nullopt;
  const Repeated out{std::get<ValueId>(expanded->args[0]), {}};
  const auto &from = graph.type(out.line).sizes, &all = graph.type(apart).sizes;
  if (from.size() != 5 || all.size() != 5 || !graph.pool().is_const(from[2], 1)) return std::nullopt;
  const bool in_place = from[0] == to[0] && from[1] == all[1] && from[3] == to[2] && from[4] == to[3];
  if (!in_place || graph.pool().mul(all[1], all[2]) != to[1]) return std::nullopt;
  return Repeated{out.line, all[2]};
}

}  // namespace

bool grouped_attention(Graph& graph) {
  static const graph::OpId attention = graph::op_id("cresset::attention");
  bool changed = false;
  for (const NodeId id : std::exchange(graph.order, {})) {
    const bool plain = graph.node(id).op == attention && !std::get<bool>(graph.node(id).args[kGrouped]);
    std::array<std::optional<Repeated>, 2> found;
    if (plain)
      for (const size_t i : {kKey, kValue})
        found[i - kKey] = repeated(graph, std::get<ValueId>(graph.node(id).args[i]));
    if (found[0] && found[1] && found[0]->times == found[1]->times) {
      graph.current_location = graph.node(id).location;
      ops::GraphBuilder builder(graph);
      for (const size_t i : {kKey, kValue}) {
        const ValueId line = builder.call("aten::squeeze.dim", {found[i - kKey]->line, builder.integer(2)});
        graph.node(id).args[i] = line;
      }
      graph.node(id).args[kGrouped] = true;
      changed = true;
    }
    graph.order.push_back(id);
  }
  return changed && (dead_code(graph), true);
}

}  // namespace cresset::passes
