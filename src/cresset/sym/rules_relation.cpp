// Relations: a canonical difference against a constant.
#include <limits>
#include <utility>

#include "base/check.h"
#include "sym/arith.h"
#include "sym/expr.h"

namespace cresset::sym {
namespace {

bool holds(Kind kind, int64_t lhs, int64_t rhs) {
  if (kind == Kind::Eq) return lhs == rhs;
  return kind == Kind::Ne ? lhs != rhs : lhs <= rhs;
}

// k*r*x - k*r*c*(x // c) + n  is  k*r*(x mod c) + n. The shorter form shows divisibility. Other sums stay.
void fold_remainder(ExprPool& pool, TermList& difference) {
  for (size_t i = 0; i < difference.size(); ++i) {
    const Term term = difference[i];
    ExprList atoms;
    atoms.assign(pool.factors(term.monomial));
    for (const ExprId atom : atoms) {
      if (pool[atom].kind != Kind::FloorDiv || !pool.is_const(pool.operands(atom)[1])) continue;
      const ExprId x = pool.operands(atom)[0], divisor = pool.operands(atom)[1];
      const int64_t c = pool.const_value(divisor);
      ExprId rest;
      if (c <= 0 || term.coefficient % c != 0 || !pool.monomial_quotient(term.monomial, atom, rest)) continue;
      const ExprId scale = pool.scaled(rest, -(term.coefficient / c));
      TermList others;
      for (size_t j = 0; j < difference.size(); ++j) {
        if (j != i) others.push_back(difference[j]);
      }
      const ExprId constant = pool.sub(pool.from_terms(others), pool.mul(scale, x));
      if (!pool.is_const(constant)) continue;
      difference.truncate(0);
      pool.terms(pool.add(pool.mul(scale, pool.mod(x, divisor)), constant), difference);
      return;
    }
  }
}

}  // namespace

// a + offset (kind) b, as  sum (kind) bound.
ExprId ExprPool::relation(Kind kind, ExprId a, ExprId b, int64_t offset) {
  TermList difference;
  if (kind == Kind::Le && is_const(b) && const_value(b) > std::numeric_limits<int64_t>::max() / 2 && !is_const(a)) {
    // A slice without an end asks for n - 1 <= 2^63 - 1. Where the constant does not fit on the other side, it stays.
    terms(a, difference);
    const int64_t constant_part = difference.back().monomial.valid() ? 0 : difference.back().coefficient;
    const int64_t limit = const_value(b) - offset;
    const __int128 exact = static_cast<__int128>(limit) - constant_part;
    const ExprId kept[] = {a, constant(limit)};
    if (clamp_to_int64(exact) != exact) return intern(kind, kept, 0);
    difference.truncate(0);
  }
  combine(a, b, -1, difference);
  while (join_remainders(difference, [this](ExprId d) { return is_const(d) && !is_const(d, 0); })) {
  }
  if (difference.size() > 1) fold_remainder(*this, difference);
  int64_t bound = saturating_neg(offset);
  if (!difference.empty() && !difference.back().monomial.valid()) {
    bound = saturating_add(bound, saturating_neg(difference.back().coefficient));
    difference.pop_back();
  }
  if (difference.empty()) return constant(holds(kind, 0, bound));
  int64_t g = 0;
  for (const Term& term : difference) g = gcd(g, term.coefficient);
  if (kind != Kind::Le && bound % g != 0) return constant(kind == Kind::Ne);
  bound = sym::floor_div(bound, g);
  for (Term& term : difference) term.coefficient /= g;
  if (kind != Kind::Le && difference[0].coefficient < 0) {  // a coefficient may have saturated at the end of int64
    for (Term& term : difference) term.coefficient = saturating_neg(term.coefficient);
    bound = saturating_neg(bound);
  }
  if (difference.size() == 1) {
    const Term term = difference[0];
    const Expr& atom = exprs_[term.monomial.index];
    if (is_boolean(term.monomial)) return relation_of_boolean(kind, term.monomial, term.coefficient < 0, bound);
    if (kind == Kind::Le && atom.kind == Kind::FloorDiv && is_const(operands(term.monomial)[1])) {
      // x // c <= n  <=>  x <= c*n + c - 1;   x // c >= n  <=>  x >= c*n;   canonical c > 0 (or 0: no value). A new
      // bound beyond int64 would saturate and change the condition, so the rule does not apply.
      const ExprId x = operands(term.monomial)[0];
      const int64_t c = exprs_[operands(term.monomial)[1].index].value;
      const bool upper = term.coefficient > 0;
      const __int128 exact =
          static_cast<__int128>(c) * (upper ? bound : -static_cast<__int128>(bound)) + (upper ? c - 1 : 0);
      if (c > 0 && clamp_to_int64(exact) == exact) {
        const ExprId limit = constant(clamp_to_int64(exact));
        return upper ? le(x, limit) : le(limit, x);
      }
    }
  }
  const ExprId operands[] = {build_sum(difference), constant(bound)};
  return intern(kind, operands, 0);
}

// +-boolean (kind) bound, the boolean being 0 or 1.
ExprId ExprPool::relation_of_boolean(Kind kind, ExprId boolean, bool negated, int64_t bound) {
  const bool at_zero = holds(kind, 0, bound), at_one = holds(kind, negated ? -1 : 1, bound);
  if (at_zero == at_one) return constant(at_zero);
  return at_one ? boolean : logical_not(boolean);
}

}  // namespace cresset::sym
