#include "sym/interval.h"

#include "sym/arith.h"

namespace cresset::sym {
namespace {

constexpr int64_t kNegInf = Interval::kNegInf;
constexpr int64_t kPosInf = Interval::kPosInf;

bool infinite(int64_t v) { return v == kNegInf || v == kPosInf; }

int64_t negated(int64_t v) {
  if (v == kNegInf) return kPosInf;
  return v == kPosInf ? kNegInf : -v;
}

// An end of a sum. `toward` is the infinity of this side; an infinite end of this side stays.
int64_t add_ends(int64_t a, int64_t b, int64_t toward) {
  if (a == toward || b == toward) return toward;
  return saturating_add(a, b);
}

// 0 * infinity is 0: an end with value 0 is attained, and the other factor is always a finite number.
int64_t mul_corner(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (infinite(a) || infinite(b)) return (a < 0) == (b < 0) ? kPosInf : kNegInf;
  return saturating_mul(a, b);
}

// The limit of a // b as infinite ends are approached. Requires b > 0.
int64_t div_corner(int64_t a, int64_t b) {
  if (b == kPosInf) return a < 0 ? -1 : 0;
  return infinite(a) ? a : floor_div(a, b);
}

// A lower end beyond int64 is still a finite lower bound, and must not be taken for an infinity later.
Interval finite_ends(Interval a) { return {std::min(a.lo, kPosInf - 1), std::max(a.hi, kNegInf + 1)}; }

Interval hull(Interval a, Interval b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

template <class Corner>
Interval of_corners(Interval a, Interval b, Corner&& corner) {
  const int64_t c[] = {corner(a.lo, b.lo), corner(a.lo, b.hi), corner(a.hi, b.lo), corner(a.hi, b.hi)};
  return finite_ends({*std::min_element(c, c + 4), *std::max_element(c, c + 4)});
}

Interval positive_part(Interval b) { return intersect(b, {1, kPosInf}); }
Interval negative_part(Interval b) { return intersect(b, {kNegInf, -1}); }

Interval div_by_positive(Interval a, Interval b) { return of_corners(a, b, div_corner); }

Interval mod_by_positive(Interval a, Interval b) {
  if (b.is_point() && !infinite(a.lo) && !infinite(a.hi) && floor_div(a.lo, b.lo) == floor_div(a.hi, b.lo)) {
    return {floor_mod(a.lo, b.lo), floor_mod(a.hi, b.lo)};
  }
  if (a.lo >= 0 && a.hi < b.lo) return a;
  const int64_t below_divisor = b.hi == kPosInf ? kPosInf : b.hi - 1;
  return {0, a.lo >= 0 ? std::min(a.hi, below_divisor) : below_divisor};
}

}  // namespace

Interval add(Interval a, Interval b) {
  if (a.empty() || b.empty()) return {1, 0};
  return finite_ends({add_ends(a.lo, b.lo, kNegInf), add_ends(a.hi, b.hi, kPosInf)});
}

Interval neg(Interval a) { return {negated(a.hi), negated(a.lo)}; }

Interval mul(Interval a, Interval b) {
  if (a.empty() || b.empty()) return {1, 0};
  return of_corners(a, b, mul_corner);
}

Interval floor_div(Interval a, Interval b) {
  if (a.empty() || b.empty()) return {1, 0};
  if (b == Interval::point(0)) return Interval::all();  // no value: any answer is sound, and the widest is the safest
  const Interval up = positive_part(b), down = negative_part(b);
  Interval result{1, 0};
  if (!up.empty()) result = hull(result, div_by_positive(a, up));
  if (!down.empty()) result = hull(result, div_by_positive(neg(a), neg(down)));
  return result;
}

Interval mod(Interval a, Interval b) {
  if (a.empty() || b.empty()) return {1, 0};
  if (b == Interval::point(0)) return Interval::all();
  const Interval up = positive_part(b), down = negative_part(b);
  Interval result{1, 0};
  if (!up.empty()) result = hull(result, mod_by_positive(a, up));
  if (!down.empty()) result = hull(result, neg(mod_by_positive(neg(a), neg(down))));
  return result;
}

Interval min(Interval a, Interval b) {
  if (a.empty() || b.empty()) return {1, 0};
  return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
}

Interval max(Interval a, Interval b) {
  if (a.empty() || b.empty()) return {1, 0};
  return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
}

}  // namespace cresset::sym
