#include "sym/scale.h"

#include <cmath>

namespace cresset::sym {
namespace {

constexpr int64_t kLargestDenominator = 2048;
constexpr int64_t kLargestFactor = 1024;
constexpr int64_t kUseful = 32;  // a smaller range of sizes does not justify a guard
// The mantissa of a multiple alone decides whether an error shows; the tried multiples lie densely enough.
constexpr int64_t kTries = 4096;

std::optional<Scale> simplest_fraction(double c) {
  for (int64_t q = 1; q <= kLargestDenominator; ++q) {
    const double p = std::nearbyint(c * static_cast<double>(q));
    if (p >= 1 && p / static_cast<double>(q) == c) return Scale{static_cast<int64_t>(p), q, 0};
  }
  return std::nullopt;
}

// The exact sign of c - p / q: c is an integer times a power of two.
int error_sign(double c, const Scale& scale) {
  // A single rounding keeps the sign.
  const double error = std::fma(c, static_cast<double>(scale.denominator), -static_cast<double>(scale.numerator));
  return error > 0 ? 1 : error < 0 ? -1 : 0;
}

}  // namespace

std::optional<Scale> scale_of(double c, bool ceil) {
  if (!(c > 0) || c > kLargestFactor) return std::nullopt;
  std::optional<Scale> scale = simplest_fraction(c);
  if (!scale) return std::nullopt;
  scale->below = kLargestScaled;
  const int harmful = ceil ? 1 : -1;
  if (error_sign(c, *scale) != harmful) return scale;
  for (int64_t m = 1; m <= kTries; ++m) {
    const double product = static_cast<double>(scale->denominator * m) * c;
    if ((ceil ? std::ceil(product) : std::floor(product)) == static_cast<double>(scale->numerator * m)) continue;
    scale->below = scale->denominator * m;
    break;
  }
  if (scale->below < kUseful) return std::nullopt;
  return scale;
}

std::optional<int64_t> first_size(const std::function<bool(double)>& holds) {
  int64_t low = 0, high = kLargestScaled;
  if (!holds(static_cast<double>(high))) return std::nullopt;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (holds(static_cast<double>(middle))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace cresset::sym
