// Arithmetic on the numbers inside expressions. Results outside int64 saturate at its ends. A size of this magnitude
// cannot exist (expr.h), but sentinels ("to the end" of a slice) can, and a sentinel must not wrap around.
#pragma once

#include <cstdint>
#include <limits>
#include <numeric>

namespace cresset::sym {

inline int64_t clamp_to_int64(__int128 v) {
  constexpr int64_t lo = std::numeric_limits<int64_t>::min();
  constexpr int64_t hi = std::numeric_limits<int64_t>::max();
  if (v > hi) return hi;
  return v < lo ? lo : static_cast<int64_t>(v);
}
inline int64_t saturating_add(int64_t a, int64_t b) { return clamp_to_int64(static_cast<__int128>(a) + b); }
inline int64_t saturating_mul(int64_t a, int64_t b) { return clamp_to_int64(static_cast<__int128>(a) * b); }
inline int64_t saturating_neg(int64_t a) { return clamp_to_int64(-static_cast<__int128>(a)); }

// Python's // and %. The divisor `b` must not be 0.
inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) return saturating_neg(a);
  const int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}
inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}
inline int64_t gcd(int64_t a, int64_t b) {
  const auto magnitude = [](int64_t v) { return v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v); };
  return clamp_to_int64(static_cast<__int128>(std::gcd(magnitude(a), magnitude(b))));
}

}  // namespace cresset::sym
