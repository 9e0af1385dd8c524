// Ranges of expressions, computed term by term and narrowed by learned ranges of sums.
#include <algorithm>

#include "base/check.h"
#include "sym/facts.h"

namespace cresset::sym {
namespace {

Interval power(Interval base, int exponent) {
  Interval result = Interval::point(1);
  for (int i = 0; i < exponent; ++i) result = mul(result, base);
  if (exponent % 2 == 0) result = intersect(result, {0, Interval::kPosInf});
  return result;
}

// The extreme int64 values also encode "no end". A constant of this value gets a range with a second, finite end.
Interval number(int64_t v) {
  if (v == Interval::kPosInf) return {v - 1, v};
  return v == Interval::kNegInf ? Interval{v, v + 1} : Interval::point(v);
}

}  // namespace

Interval Facts::range_of(ExprId e) {
  if (pool_[e].kind == Kind::Const) return number(pool_[e].value);
  if (const Memo& m = memo(e); m.range_at == epoch_) return m.range;
  Interval result = range_uncached(e);
  if (const auto it = sum_range_.find(e); it != sum_range_.end()) result = intersect(result, it->second);
  Memo& m = memo(e);
  m.range = result;
  m.range_at = epoch_;
  return result;
}

Interval Facts::product_range(ExprId monomial) {
  Interval result = Interval::point(1);
  ExprList atoms;
  atoms.assign(pool_.factors(monomial));
  for (size_t i = 0; i < atoms.size();) {
    size_t run = i + 1;
    while (run < atoms.size() && atoms[run] == atoms[i]) ++run;
    result = mul(result, power(range_of(atoms[i]), static_cast<int>(run - i)));
    i = run;
  }
  return result;
}

Interval Facts::var_range(VarId var) {
  const VarInfo v = info(var);
  if (v.replacement.valid()) return intersect(v.range, range(v.replacement));
  if (!v.extent.valid()) return v.range;
  const Interval extents = range_of(extent(var));
  if (extents.hi == Interval::kPosInf) return v.range;
  // For an index without iterations every claim holds. The range nevertheless stays wider than 0 where the extent may
  // be 0: an address simplified with index 0 would be read before the loop, where no element may exist.
  return intersect(v.range, {0, std::max<int64_t>(extents.hi - 1, extents.lo < 1 ? 1 : 0)});
}

Interval Facts::range_uncached(ExprId e) {
  const Kind kind = pool_[e].kind;
  ExprList operands;
  operands.assign(pool_.operands(e));
  const auto fold = [&](auto&& combine) {
    Interval result = range_of(operands[0]);
    for (size_t i = 1; i < operands.size(); ++i) result = combine(result, range_of(operands[i]));
    return result;
  };
  switch (kind) {
    case Kind::Const:
      return number(pool_[e].value);
    case Kind::Var:
      return var_range(pool_.var_of(e));
    case Kind::Add:
      return fold([](Interval a, Interval b) { return add(a, b); });
    case Kind::Mul:
      if (pool_[e].value != 1) return mul(range_of(pool_[e].monomial), number(pool_[e].value));
      return product_range(e);
    case Kind::FloorDiv:
      return fold([](Interval a, Interval b) { return floor_div(a, b); });
    case Kind::Mod:
      return fold([](Interval a, Interval b) { return mod(a, b); });
    case Kind::Min:
      return fold([](Interval a, Interval b) { return min(a, b); });
    case Kind::Max:
      return fold([](Interval a, Interval b) { return max(a, b); });
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le:
    case Kind::And:
    case Kind::Or:
    case Kind::Not:
      return {0, 1};
  }
  CRESSET_CHECK(false, "unknown kind");
}

}  // namespace cresset::sym
