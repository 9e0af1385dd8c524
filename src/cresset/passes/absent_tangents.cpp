#include "passes/absent_tangents.h"

#include <algorithm>

#include "ops/context.h"
#include "passes/rewriter.h"

namespace cresset::passes {
namespace {

using graph::Arg;
using graph::Node;
using graph::TensorType;

class Absence {
 public:
  Absence(Graph& graph, std::span<const ValueId> tangents, const std::vector<bool>& given) : graph_(graph) {
    for (size_t i = 0; i < tangents.size(); ++i) (given[i] ? given_ : absent_).insert(tangents[i]);
  }

  void visit(NodeId id) {
    replacements_.apply(graph_.node(id).args);
    bool any_absent = false, any_given = false;
    Graph::for_each_value(graph_.node(id).args, [&](const ValueId& v) {
      any_absent |= absent_.contains(v);
      any_given |= given_.contains(v);
    });
    if (any_absent && !any_given && vanishes(graph_.node(id))) return mark(id, absent_);
    if (any_absent && drop_term(graph_.node(id))) return;
    if (any_absent) fill_in(id);
    if (any_absent || any_given) mark(id, given_);
    order_.push_back(id);
  }

  std::vector<bool> finish(std::vector<NodeId>& order, std::vector<ValueId>& outputs) {
    static const graph::OpId clone = graph::op_id("aten::clone");
    std::vector<bool> none;
    std::unordered_set<ValueId> taken;
    for (ValueId& v : outputs) {
      none.push_back(absent_.contains(v));
      if (none.back()) continue;
      const ValueId found = replacements_.resolve(v);
      const bool computed = graph_.value(found).kind == graph::Value::Kind::Result;
      v = found;
      if (computed && taken.insert(found).second) continue;
      order_.push_back(graph_.add_node(clone, {found, graph::None{}}, {graph_.type(found)}));
      v = graph_.node(order_.back()).results[0];
    }
    order = std::move(order_);
    return none;
  }

 private:
  // Whether a missing gradient makes the results missing too. This is not the case for positions, nor for operators
  // which use only sizes.
  bool vanishes(const Node& node) const {
    return !has_effects(node) && !ops::traits(node.op).of_layout &&
           std::all_of(node.results.begin(), node.results.end(),
                       [&](ValueId v) { return is_differentiable(graph_.type(v).dtype); });
  }

  // A sum with one missing term is replaced by the other term.
  bool drop_term(const Node& node) {
    static const graph::OpId add = graph::op_id("aten::add.Tensor");
    if (node.op != add) return false;
    const auto *a = std::get_if<ValueId>(&node.args[0]), *b = std::get_if<ValueId>(&node.args[1]);
    const auto* factor = std::get_if<sym::ExprId>(&node.args[2]);
    if (a == nullptr || b == nullptr || factor == nullptr || !graph_.pool().is_const(*factor, 1)) return false;
    const ValueId left = absent_.contains(*a) ? *b : *a, sum = node.results[0];
    if (!same_type(graph_.type(left), graph_.type(sum))) return false;
    replacements_.add(sum, left);
    return true;
  }

  void fill_in(NodeId id) {
    std::vector<Arg> args = graph_.node(id).args;
    Graph::for_each_value(args, [&](ValueId& v) {
      if (absent_.contains(v)) v = zeros(v);
    });
    graph_.node(id).args = std::move(args);
  }

  ValueId zeros(ValueId like) {
    const auto [known, is_new] = zeros_.try_emplace(like, like);
    if (!is_new) return known->second;
    static const graph::OpId empty = graph::op_id("aten::empty_strided"), fill = graph::op_id("aten::fill.Scalar");
    TensorType type = graph_.type(like);
    type.strides =
        ops::ShapeContext(graph_, "a missing gradient", ops::ShapeContext::Demands::KnownOnly).like_strides(type);
    const NodeId made = graph_.add_node(
        empty, {type.sizes, type.strides, type.dtype, graph::None{}, type.device, graph::None{}}, {type});
    const NodeId filled =
        graph_.add_node(fill, {graph_.node(made).results[0], graph_.pool().constant(0)}, {std::move(type)});
    order_.push_back(made);
    order_.push_back(filled);
    return zeros_[like] = graph_.node(filled).results[0];
  }

  void mark(NodeId id, std::unordered_set<ValueId>& as) {
    for (const ValueId v : graph_.node(id).results) as.insert(v);
  }

  Graph& graph_;
  std::vector<NodeId> order_;
  std::unordered_set<ValueId> absent_, given_;  // computed from missing tangents alone; from present tangents
  std::unordered_map<ValueId, ValueId> zeros_;
  Replacements replacements_;
};

}  // namespace

std::vector<bool> without_tangents(Graph& graph, std::vector<NodeId>& order, std::vector<ValueId>& outputs,
                                   std::span<const ValueId> tangents, const std::vector<bool>& given) {
  Absence absence(graph, tangents, given);
  const std::vector<NodeId> before = order;  // a copy, since `order` may be the graph's own order and grow
  for (const NodeId id : before) absence.visit(id);
  return absence.finish(order, outputs);
}

}  // namespace cresset::passes
