// Bounds of sums of products whose atoms have a least value each.
#pragma once

#include <functional>
#include <span>

#include "sym/expr.h"

namespace cresset::sym {

// Whether a sum is at most `bound`, since it does not grow when any atom does: written in how far each atom is above
// its least value, no term has a positive factor. b + b*p*q >= p*q + 2 for b, p, q >= 2 is found so: with b = 2 + b'
// and so on every coefficient has the sign that the bound wants. Ranges of single terms do not see it, since one factor
// grows on both sides. `least` gives an atom's least value, Interval::kNegInf where it has none. False: not known.
bool falls_from(ExprPool& pool, std::span<const Term> sum, int64_t bound, const std::function<int64_t(ExprId)>& least);

}  // namespace cresset::sym
