// And, Or, Not over truth values. An integer counts as true when it is not zero.
#include <algorithm>

#include "sym/arith.h"
#include "sym/expr.h"

namespace cresset::sym {

ExprId ExprPool::junction(Kind kind, ExprId a, ExprId b) {
  const int64_t absorbing = kind == Kind::Or ? 1 : 0;
  ExprList kept;
  for (ExprId side : {a, b}) {
    if (!is_boolean(side)) side = ne(side, constant(0));
    if (exprs_[side.index].kind == kind) {
      for (const ExprId e : operands(side)) kept.push_back(e);
    } else if (!is_const(side)) {
      kept.push_back(side);
    } else if (exprs_[side.index].value == absorbing) {
      return side;
    }
  }
  std::sort(kept.begin(), kept.end());
  kept.truncate(static_cast<size_t>(std::unique(kept.begin(), kept.end()) - kept.begin()));
  if (kept.empty()) return constant(1 - absorbing);
  if (kept.size() == 1) return kept[0];
  for (const ExprId e : kept) {  // x and not x
    if (exprs_[e.index].kind == Kind::And || exprs_[e.index].kind == Kind::Or) continue;
    if (std::binary_search(kept.begin(), kept.end(), logical_not(e))) return constant(absorbing);
  }
  return intern(kind, kept, 0);
}

ExprId ExprPool::make_not(ExprId a) {
  const Expr e = exprs_[a.index];
  if (e.kind == Kind::And || e.kind == Kind::Or) {
    ExprList parts;
    parts.assign(operands(a));
    ExprId result = constant(e.kind == Kind::And ? 0 : 1);
    for (const ExprId part : parts) {
      const ExprId negated = logical_not(part);
      result = e.kind == Kind::And ? logical_or(result, negated) : logical_and(result, negated);
    }
    return result;
  }
  if (e.kind != Kind::Eq && e.kind != Kind::Ne && e.kind != Kind::Le) return eq(a, constant(0));
  const ExprId lhs = operands(a)[0], rhs = operands(a)[1];
  if (e.kind == Kind::Le) return lt(rhs, lhs);
  const ExprId both[] = {lhs, rhs};
  return intern(e.kind == Kind::Eq ? Kind::Ne : Kind::Eq, both, 0);
}

}  // namespace cresset::sym
