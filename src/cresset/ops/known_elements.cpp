#include "ops/known_elements.h"

#include "ops/op_def.h"
#include "ops/position_nodes.h"

namespace cresset::ops {
namespace {

using graph::Arg;
using graph::Node;
using graph::ValueId;

constexpr int kMostTerms = 64;

// The number with which the operator fills its result.
const Arg* fill_of(const Node& node, std::string_view name) {
  if (name == "aten::scalar_tensor") return &node.args[0];
  if (name == "aten::full" || name == "aten::full_like" || name == "aten::fill.Scalar") return &node.args[1];
  if (name == "aten::new_full") return &node.args[2];
  static const Arg none = false, all = true;
  if (name == "aten::zeros" || name == "aten::zeros_like" || name == "aten::new_zeros") return &none;
  if (name == "aten::ones" || name == "aten::ones_like" || name == "aten::new_ones") return &all;
  return nullptr;
}

// The argument whose elements alone the result has.
std::optional<ValueId> source_of(const Node& node) {
  const OpDef* def = find(node.op);
  if (def == nullptr || node.args.empty() || def->traits.by_memory) return std::nullopt;
  static const graph::OpId index = graph::op_id("aten::index.Tensor");
  if (node.op == index) return std::get<ValueId>(node.args[0]);
  if (def->op_class != OpClass::View && !hands_on(node.op)) return std::nullopt;
  const auto* value = std::get_if<ValueId>(&node.args[0]);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

}  // namespace

KnownElements::Bounds KnownElements::between(int64_t least, int64_t greatest) const {
  return {graph_.pool().constant(least), graph_.pool().constant(greatest)};
}

KnownElements::Truth KnownElements::truth(ValueId v) {
  if (const auto known = truths_.find(v); known != truths_.end()) return known->second;
  if (depth_ >= kDeepest) return std::nullopt;
  ++depth_;
  const Truth found = truth_of(v);
  --depth_;
  truths_[v] = found;
  return found;
}

KnownElements::Truth KnownElements::truth_of(ValueId v) {
  const graph::Value& value = graph_.value(v);
  if (value.type.dtype == DType::Bool)
    return value.node.valid() ? truth_of_boolean(graph_.node(value.node)) : std::nullopt;
  const Known found = bounds(v);
  if (!found) return std::nullopt;
  const Bounds zero = between(0, 0);
  const Truth is_zero = all_equal(*found, zero);
  return is_zero ? std::optional(!*is_zero) : std::nullopt;
}

KnownElements::Truth KnownElements::truth_of_number(const Arg& number) const {
  if (const auto* flag = std::get_if<bool>(&number)) return *flag;
  if (const auto* x = std::get_if<double>(&number)) return *x != 0;
  const auto* e = std::get_if<sym::ExprId>(&number);
  if (e == nullptr || !graph_.pool().is_const(*e)) return std::nullopt;
  return graph_.pool().const_value(*e) != 0;
}

KnownElements::Truth KnownElements::operand_truth(const Arg& arg) {
  if (const auto* value = std::get_if<ValueId>(&arg)) return truth(*value);
  return truth_of_number(arg);
}

KnownElements::Truth KnownElements::truth_of_boolean(const Node& node) {
  const std::string_view name = graph::op_name(node.op), base = base_name(node);
  if (const Arg* fill = fill_of(node, name)) return truth_of_number(*fill);
  if (const std::optional<ValueId> source = source_of(node)) return truth(*source);
  if (base == "bitwise_and" || base == "logical_and" || base == "mul") return connective(node, false);
  if (base == "bitwise_or" || base == "logical_or") return connective(node, true);
  if (base == "bitwise_not" || base == "logical_not") {
    const Truth of = operand_truth(node.args[0]);
    return of ? std::optional(!*of) : std::nullopt;
  }
  return comparison(node, base);
}

// `decisive`: the operand which alone decides, false for a conjunction.
KnownElements::Truth KnownElements::connective(const Node& node, bool decisive) {
  const Truth a = operand_truth(node.args[0]), b = operand_truth(node.args[1]);
  if (a == decisive || b == decisive) return decisive;
  return a && b ? std::optional(!decisive) : std::nullopt;
}

KnownElements::Truth KnownElements::all_less(const Bounds& a, const Bounds& b) {
  sym::ExprPool& pool = graph_.pool();
  if (at_most_(pool.add(a.greatest, pool.constant(1)), b.least)) return true;
  return at_most_(b.greatest, a.least) ? std::optional(false) : std::nullopt;
}

KnownElements::Truth KnownElements::all_equal(const Bounds& a, const Bounds& b) {
  if (all_less(a, b) == true || all_less(b, a) == true) return false;
  return at_most_(a.greatest, b.least) && at_most_(b.greatest, a.least) ? std::optional(true) : std::nullopt;
}

KnownElements::Truth KnownElements::comparison(const Node& node, std::string_view relation) {
  const auto is = [&](std::string_view a, std::string_view b) { return relation == a || relation == b; };
  if (!is("lt", "gt") && !is("le", "ge") && !is("eq", "ne")) return std::nullopt;
  if (const std::optional<int64_t> difference = affine_.difference(node)) {
    const int64_t d = *difference;
    const bool less = d < 0, more = d > 0;
    return is("lt", "ge")   ? less == (relation == "lt")
           : is("gt", "le") ? more == (relation == "gt")
                            : (d == 0) == (relation == "eq");
  }
  const Known a = operand_bounds(node.args[0]), b = operand_bounds(node.args[1]);
  if (!a || !b) return std::nullopt;
  const auto opposite = [](Truth t) { return t ? std::optional(!*t) : std::nullopt; };
  if (relation == "lt") return all_less(*a, *b);
  if (relation == "gt") return all_less(*b, *a);
  if (relation == "le") return opposite(all_less(*b, *a));
  if (relation == "ge") return opposite(all_less(*a, *b));
  return relation == "eq" ? all_equal(*a, *b) : opposite(all_equal(*a, *b));
}

KnownElements::Known KnownElements::bounds(ValueId v) {
  const graph::Value& value = graph_.value(v);
  if (!value.node.valid() || depth_ >= kDeepest) return std::nullopt;
  if (value.type.dtype == DType::Bool) {
    const Truth known = truth(v);
    return known ? between(*known ? 1 : 0, *known ? 1 : 0) : between(0, 1);
  }
  if (value.type.dtype != DType::I64) return std::nullopt;  // narrower integers overflow
  if (const auto known = bounds_.find(v); known != bounds_.end()) return known->second;
  ++depth_;
  const Known found = bounds_of_integers(graph_.node(value.node));
  --depth_;
  bounds_[v] = found;
  return found;
}

KnownElements::Known KnownElements::operand_bounds(const Arg& arg) {
  if (const auto* value = std::get_if<ValueId>(&arg)) return bounds(*value);
  if (const auto* flag = std::get_if<bool>(&arg)) return between(*flag ? 1 : 0, *flag ? 1 : 0);
  const auto* e = std::get_if<sym::ExprId>(&arg);
  return e != nullptr ? number_bounds(*e) : std::nullopt;
}

KnownElements::Known KnownElements::number_bounds(sym::ExprId number) const {
  const Bounds moderate = between(-kModerate, kModerate);
  const bool is_size = !graph_.pool().is_const(number) && graph_.env().range(number).lo >= 0;
  if (!is_size && !(at_most_(moderate.least, number) && at_most_(number, moderate.greatest))) return std::nullopt;
  return Bounds{number, number};
}

KnownElements::Known KnownElements::bounds_of_integers(const Node& node) {
  const std::string_view name = graph::op_name(node.op), base = base_name(node);
  if (const Arg* fill = fill_of(node, name)) return operand_bounds(*fill);
  if (const std::optional<ValueId> source = source_of(node)) return bounds(*source);
  if (base == "arange") return bounds_of_range(node);
  if (base == "add" || base == "sub") return sum(node, base == "sub");
  if (base == "cumsum") return sum_of_nothing(node);
  return base == "abs" ? magnitude(node) : std::nullopt;
}

KnownElements::Known KnownElements::bounds_of_range(const Node& node) const {
  sym::ExprPool& pool = graph_.pool();
  const std::optional<Range> range = range_of(node, pool);
  if (!range) return std::nullopt;
  const auto [start, end, step] = *range;
  if (!pool.is_const(step) || pool.is_const(step, 0)) return std::nullopt;
  if (!number_bounds(start) || !number_bounds(end)) return std::nullopt;
  const sym::ExprId one = pool.constant(1);
  if (pool.const_value(step) > 0) return Bounds{start, pool.sub(end, one), 2};
  return Bounds{pool.add(end, one), start, 2};
}

KnownElements::Known KnownElements::sum(const Node& node, bool negated) {
  sym::ExprPool& pool = graph_.pool();
  const Known a = operand_bounds(node.args[0]), b = operand_bounds(node.args[1]);
  if (!a || !b || !is_number(graph_, node.args[2], 1)) return std::nullopt;
  const int terms = a->terms + b->terms;
  if (terms > kMostTerms) return std::nullopt;
  if (negated) return Bounds{pool.sub(a->least, b->greatest), pool.sub(a->greatest, b->least), terms};
  return Bounds{pool.add(a->least, b->least), pool.add(a->greatest, b->greatest), terms};
}

// Of zeros, the only elements whose sums are known whatever their number.
KnownElements::Known KnownElements::sum_of_nothing(const Node& node) {
  const auto* source = std::get_if<ValueId>(&node.args[0]);
  if (source == nullptr || truth(*source) != false) return std::nullopt;
  return between(0, 0);
}

KnownElements::Known KnownElements::magnitude(const Node& node) {
  sym::ExprPool& pool = graph_.pool();
  const Known of = operand_bounds(node.args[0]);
  if (!of) return std::nullopt;
  return Bounds{pool.constant(0), pool.max(of->greatest, pool.neg(of->least)), of->terms};
}

}  // namespace cresset::ops
