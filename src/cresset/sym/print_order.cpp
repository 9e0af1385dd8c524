#include "sym/print_order.h"

#include <algorithm>
#include <compare>

namespace cresset::sym {
namespace {

bool commutes(Kind kind) {
  return kind == Kind::Add || kind == Kind::Mul || kind == Kind::Min || kind == Kind::Max || kind == Kind::And ||
         kind == Kind::Or;
}

// The order of kinds in a sum: s0 + s0//2 + 1.
int rank(Kind kind) {
  if (kind == Kind::Var) return 0;
  return kind == Kind::Const ? 100 : 1 + static_cast<int>(kind);
}

template <class T>
int sign(T a, T b) {
  return (a > b) - (a < b);
}

int compare_lists(const ExprPool& pool, std::span<const ExprId> a, std::span<const ExprId> b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (const int order = compare_structure(pool, a[i], b[i])) return order;
  }
  return sign(a.size(), b.size());
}

int compare_monomials(const ExprPool& pool, ExprId a, ExprId b) {
  if (a == b) return 0;
  if (!a.valid() || !b.valid()) return a.valid() ? -1 : 1;
  if (pool[a].kind != Kind::Mul && pool[b].kind != Kind::Mul) return compare_structure(pool, a, b);
  ExprList left, right;
  left.assign(pool.factors(a));
  right.assign(pool.factors(b));
  sort_by_structure(pool, left);
  sort_by_structure(pool, right);
  return compare_lists(pool, left, right);
}

}  // namespace

int compare_structure(const ExprPool& pool, ExprId a, ExprId b) {
  if (a == b) return 0;
  const Expr &x = pool[a], &y = pool[b];
  if (x.kind != y.kind) return sign(rank(x.kind), rank(y.kind));
  if (x.count == 0) return sign(x.value, y.value);
  if (x.kind == Kind::Mul) {
    const int order = compare_monomials(pool, x.monomial, y.monomial);
    return order != 0 ? order : sign(x.value, y.value);
  }
  ExprList left, right;
  left.assign(pool.operands(a));
  right.assign(pool.operands(b));
  if (commutes(x.kind)) {
    sort_by_structure(pool, left);
    sort_by_structure(pool, right);
  }
  return compare_lists(pool, left, right);
}

void sort_by_structure(const ExprPool& pool, ExprList& list) {
  std::sort(list.begin(), list.end(), [&pool](ExprId a, ExprId b) { return compare_structure(pool, a, b) < 0; });
}

void sort_by_structure(const ExprPool& pool, TermList& terms) {
  std::sort(terms.begin(), terms.end(),
            [&pool](const Term& a, const Term& b) { return compare_monomials(pool, a.monomial, b.monomial) < 0; });
}

}  // namespace cresset::sym
