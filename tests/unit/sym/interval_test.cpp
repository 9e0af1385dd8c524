#include "sym/interval.h"

#include <gtest/gtest.h>

#include "sym/arith.h"

namespace cresset::sym {
namespace {

using Operation = Interval (*)(Interval, Interval);
using Value = int64_t (*)(int64_t, int64_t);

struct Row {
  const char* name;
  Operation interval;
  Value value;
  bool divides;
};
const Row kRows[] = {
    {"add", add, [](int64_t a, int64_t b) { return a + b; }, false},
    {"mul", mul, [](int64_t a, int64_t b) { return a * b; }, false},
    {"floor_div", floor_div, [](int64_t a, int64_t b) { return floor_div(a, b); }, true},
    {"mod", mod, [](int64_t a, int64_t b) { return floor_mod(a, b); }, true},
    {"min", min, [](int64_t a, int64_t b) { return std::min(a, b); }, false},
    {"max", max, [](int64_t a, int64_t b) { return std::max(a, b); }, false},
};

// All intervals with ends in [-5, 5] or infinite; values of infinite ends are sampled to 12.
std::vector<Interval> samples() {
  std::vector<Interval> out{Interval::all()};
  for (int64_t lo = -5; lo <= 5; ++lo) {
    out.push_back({lo, Interval::kPosInf});
    out.push_back({Interval::kNegInf, lo});
    for (int64_t hi = lo; hi <= 5; ++hi) out.push_back({lo, hi});
  }
  return out;
}
Interval finite(Interval a) { return intersect(a, {-12, 12}); }

TEST(Interval, ContainsEveryValue) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    for (const Interval a : samples()) {
      for (const Interval b : samples()) {
        const Interval result = row.interval(a, b);
        for (int64_t x = finite(a).lo; x <= finite(a).hi; ++x) {
          for (int64_t y = finite(b).lo; y <= finite(b).hi; ++y) {
            if (row.divides && y == 0) continue;
            ASSERT_TRUE(result.contains(row.value(x, y)))
                << x << ", " << y << " from [" << a.lo << ", " << a.hi << "] [" << b.lo << ", " << b.hi << "]";
          }
        }
      }
    }
  }
}

TEST(Interval, FiniteResultsAreExact) {
  for (const Row& row : kRows) {
    if (row.divides) continue;  // remainders have gaps at the ends
    SCOPED_TRACE(row.name);
    for (const Interval a : samples()) {
      for (const Interval b : samples()) {
        if (finite(a) != a || finite(b) != b) continue;
        int64_t lo = INT64_MAX, hi = INT64_MIN;
        for (int64_t x = a.lo; x <= a.hi; ++x) {
          for (int64_t y = b.lo; y <= b.hi; ++y) {
            lo = std::min(lo, row.value(x, y));
            hi = std::max(hi, row.value(x, y));
          }
        }
        ASSERT_EQ(row.interval(a, b), (Interval{lo, hi}));
      }
    }
  }
}

TEST(Interval, HugeEndsStaySound) {
  const Interval big{Interval::kPosInf / 2, Interval::kPosInf - 1};
  EXPECT_LE(mul(big, big).lo, Interval::kPosInf - 1);
  EXPECT_EQ(mul(big, big).hi, Interval::kPosInf);
  EXPECT_EQ(add(big, big).hi, Interval::kPosInf);
  EXPECT_EQ(mul(Interval::point(0), Interval::all()), Interval::point(0));
  EXPECT_EQ(neg(Interval::size()), (Interval{Interval::kNegInf, 0}));
}

TEST(Interval, EmptyStaysEmpty) {
  const Interval nothing{1, 0};
  for (const Row& row : kRows) {
    EXPECT_TRUE(row.interval(nothing, Interval::all()).empty()) << row.name;
    EXPECT_TRUE(row.interval(Interval::all(), nothing).empty()) << row.name;
  }
}

}  // namespace
}  // namespace cresset::sym
