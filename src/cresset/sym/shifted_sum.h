// Bounds of sums of products whose atoms have a least value each.
#pragma once

#include <functional>
#include <span>

#include "sym/expr.h"

namespace cresset::sym {

// Returns whether a sum is at most `bound` because it does not grow in any atom. The sum is written in the distance of
// each atom from its least value; then no term has a positive factor. b + b*p*q >= p*q + 2 for b, p, q >= 2 is found in
// this way: with b = 2 + b' and so on, every coefficient has the sign that the bound needs. The ranges of single terms
// do not prove it, since one factor grows on both sides. `least` returns an atom's least value, or Interval::kNegInf.
// False means "not known".
bool falls_from(ExprPool& pool, std::span<const Term> sum, int64_t bound, const std::function<int64_t(ExprId)>& least);

}  // namespace cresset::sym
