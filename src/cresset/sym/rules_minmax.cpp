// Minimum and maximum: flattened, at most one constant, operands with a constant difference compared.
#include <algorithm>

#include "sym/expr.h"

namespace cresset::sym {

ExprId ExprPool::extremum(Kind kind, ExprId a, ExprId b) {
  if (a == b) return a;
  ExprList kept;
  const auto insert = [&](ExprId e) {
    for (ExprId& other : kept) {
      int64_t difference;
      if (!constant_difference(e, other, difference)) continue;
      if ((difference < 0) == (kind == Kind::Min)) other = e;
      return;
    }
    kept.push_back(e);
  };
  for (const ExprId side : {a, b}) {
    if (exprs_[side.index].kind != kind) {
      insert(side);
    } else {
      for (const ExprId e : operands(side)) insert(e);
    }
  }
  if (kept.size() == 1) return kept[0];
  std::sort(kept.begin(), kept.end());
  return intern(kind, kept, 0);
}

}  // namespace cresset::sym
