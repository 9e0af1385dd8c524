// Sizes times floats: floor and ceil of n * c as exact integer expressions. Eager mode computes the product in double.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace cresset::sym {

// floor(n * c) == (n * numerator) // denominator for all n in [0, below), where n * c is rounded to double.
struct Scale {
  int64_t numerator = 0, denominator = 1;
  int64_t below = 0;
};

// The largest size considered here. No dimension has more elements.
inline constexpr int64_t kLargestScaled = int64_t{1} << 40;

// Returns the fraction for floor or, with `ceil`, for ceil (ceil_div). The fraction is the simplest fraction which
// rounds to c. Returns nullopt when c is no fraction of this kind or is not positive. Also returns nullopt when the two
// formulas first differ at a size too small to be useful.
//
// `below` is usually kLargestScaled for the following reason. When n * p / q is not an integer, its distance to the
// next integer is at least 1 / q. Rounding cannot move the product over an integer then. Otherwise n is q * m, and n *
// c is p * m * (1 + d) with d the relative error of c. The product is rounded to p * m, or away from it on the side of
// d only. For half of all c this is the harmless side. On the harmful side it never happens when d is below a quarter
// unit in the last place. The remaining values are tried.
std::optional<Scale> scale_of(double c, bool ceil);

// Returns the least n in [0, kLargestScaled] for which `holds` is true. `holds` must be monotonic. Returns nullopt when
// it is never true.
std::optional<int64_t> first_size(const std::function<bool(double)>& holds);

}  // namespace cresset::sym
