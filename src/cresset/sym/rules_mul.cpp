// Products: factors sorted, constants gathered, distributed over sums.
#include <algorithm>

#include "sym/arith.h"
#include "sym/expr.h"

namespace cresset::sym {

std::span<const ExprId> ExprTable::factors(const ExprId& monomial) const {
  if (!monomial.valid()) return {};
  return exprs_[monomial.index].kind == Kind::Mul ? operands(monomial) : std::span<const ExprId>(&monomial, 1);
}

ExprId ExprPool::monomial_product(ExprId a, ExprId b) {
  if (!a.valid()) return b;
  if (!b.valid()) return a;
  ExprList merged;
  const std::span<const ExprId> left = factors(a), right = factors(b);
  size_t i = 0, j = 0;
  while (i < left.size() || j < right.size()) {
    const bool take_left = j == right.size() || (i < left.size() && left[i] < right[j]);
    merged.push_back(take_left ? left[i++] : right[j++]);
  }
  return intern(Kind::Mul, merged, 1);
}

bool ExprPool::monomial_quotient(ExprId a, ExprId b, ExprId& out) {
  const std::span<const ExprId> dividend = factors(a), divisor = factors(b);
  if (divisor.size() > dividend.size()) return false;
  ExprList left_over;
  size_t j = 0;
  for (const ExprId factor : dividend) {
    if (j < divisor.size() && factor == divisor[j]) {
      ++j;
    } else {
      left_over.push_back(factor);
    }
  }
  if (j != divisor.size()) return false;
  if (left_over.empty()) {
    out = ExprId{};
  } else {
    out = left_over.size() == 1 ? left_over[0] : intern(Kind::Mul, left_over, 1);
  }
  return true;
}

ExprId ExprPool::make_mul(ExprId a, ExprId b) {
  if (is_const(a)) std::swap(a, b);
  if (is_const(b)) {
    const int64_t scale = exprs_[b.index].value;
    if (scale == 1) return a;
    if (scale == 0) return b;
    if (exprs_[a.index].kind != Kind::Add) {
      const Term term = term_of(a);
      return scaled(term.monomial, saturating_mul(term.coefficient, scale));
    }
  }
  if (exprs_[a.index].kind == Kind::Add || exprs_[b.index].kind == Kind::Add) return distribute(a, b);
  const Term left = term_of(a), right = term_of(b);
  return scaled(monomial_product(left.monomial, right.monomial), saturating_mul(left.coefficient, right.coefficient));
}

ExprId ExprPool::distribute(ExprId a, ExprId b) {
  TermList left, right, out;
  terms(a, left);
  terms(b, right);
  if (left.size() > 1 && right.size() > 1 && left.size() * right.size() > kMaxProductTerms) {
    return monomial_product(a, b);  // both are sums, hence without a coefficient of their own
  }
  for (const Term& l : left) {
    for (const Term& r : right) {
      out.push_back({monomial_product(l.monomial, r.monomial), saturating_mul(l.coefficient, r.coefficient)});
    }
  }
  return from_terms(out);
}

ExprId ExprPool::product(std::span<const ExprId> factors) {
  ExprId result = constant(1);
  for (const ExprId factor : factors) result = mul(result, factor);
  return result;
}

}  // namespace cresset::sym
