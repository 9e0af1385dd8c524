// Closed intervals of integers, with infinities: the range of a symbolic expression.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace cresset::sym {

struct Interval {
  static constexpr int64_t kNegInf = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kPosInf = std::numeric_limits<int64_t>::max();

  int64_t lo = kNegInf;
  int64_t hi = kPosInf;

  static constexpr Interval all() { return {}; }
  static constexpr Interval size() { return {0, kPosInf}; }
  static constexpr Interval point(int64_t v) { return {v, v}; }

  constexpr bool is_point() const { return lo == hi; }
  constexpr bool empty() const { return lo > hi; }
  constexpr bool contains(int64_t v) const { return lo <= v && v <= hi; }
  constexpr bool operator==(const Interval&) const = default;
};

inline Interval intersect(Interval a, Interval b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

// Sound over-approximations: for x in a and y in b, the result contains x op y.
Interval add(Interval a, Interval b);
Interval neg(Interval a);
Interval mul(Interval a, Interval b);
Interval floor_div(Interval a, Interval b);
Interval mod(Interval a, Interval b);
Interval min(Interval a, Interval b);
Interval max(Interval a, Interval b);

}  // namespace cresset::sym
