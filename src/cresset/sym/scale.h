// Sizes times floats: floor and ceil of n * c, computed in double as eager computes them, as exact integer expressions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace cresset::sym {

// floor(n * c) == (n * numerator) // denominator for all n in [0, below), n * c rounded to double.
struct Scale {
  int64_t numerator = 0, denominator = 1;
  int64_t below = 0;
};

// Sizes that are reasoned about here: no dimension of more elements is met.
inline constexpr int64_t kLargestScaled = int64_t{1} << 40;

// For floor, or for ceil (then it is ceil_div). The fraction is the simplest one that rounds to c. nullopt when c is no
// such fraction, is not positive, or the first size for which they differ is too small to be of use.
//
// Why `below` is usually kLargestScaled: rounding cannot move n * p / q over an integer that it is not equal to, since
// it is 1 / q away from it. Where it is one, n * c is p * m * (1 + d) with d the error of c, which is rounded to p * m
// or away from it on the side of d only: on the harmless side for half of all c, and on the other never when d is below
// a quarter unit in the last place. What is left is tried.
std::optional<Scale> scale_of(double c, bool ceil);

// The least n in [0, kLargestScaled] for which `holds`, which stays true once it is; nullopt when it is never.
std::optional<int64_t> first_size(const std::function<bool(double)>& holds);

}  // namespace cresset::sym
