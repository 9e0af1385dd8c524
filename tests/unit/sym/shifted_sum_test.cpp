#include "sym/shifted_sum.h"

#include <random>

#include "sym/interval.h"
#include "sym_fixture.h"

namespace cresset::sym {
namespace {

class ShiftedSumTest : public testing::PoolTest {
 protected:
  bool falls(std::string_view text, int64_t bound, int64_t least) {
    return falls_from(pool_, terms((*this)(text)), bound, [=](ExprId) { return least; });
  }
  std::vector<Term> terms(ExprId sum) {
    TermList list;
    pool_.terms(sum, list);
    return {list.begin(), list.end()};
  }
};

TEST_F(ShiftedSumTest, ProductsAreCountedFromTheirLeastValues) {
  EXPECT_TRUE(falls("p * q - b - b * p * q", -2, 2));  // b + b*p*q >= p*q + 2
  EXPECT_TRUE(falls("p * q - b - b * p * q", -6, 2));  // and no less than 6 more
  EXPECT_FALSE(falls("p * q - b - b * p * q", -7, 2));
  EXPECT_FALSE(falls("p * q - b - b * p * q", -2, 0));
  EXPECT_TRUE(falls("2 * p - p * p", 0, 2));  // a factor that is there twice
  EXPECT_FALSE(falls("3 * p - p * p", 0, 2));
  EXPECT_FALSE(falls("0 - p - q", 0, 2)) << "ranges say as much of sums without products";
}

TEST_F(ShiftedSumTest, AtomsWithoutALeastValueSayNothing) {
  EXPECT_FALSE(falls("0 - p * q", 0, Interval::kNegInf));
  EXPECT_FALSE(falls("4611686018427387904 * p * q - b", 0, 2));
}

TEST_F(ShiftedSumTest, WhatIsSaidHoldsAtAllPoints) {
  std::mt19937 random(7);
  const auto pick = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  std::vector<VarId> vars;
  for (int i = 0; i < 3; ++i) vars.push_back(pool_.new_var());
  int said = 0;
  for (int round = 0; round < 3000; ++round) {
    ExprId sum = pool_.constant(pick(-4, 4));
    for (int term = pick(1, 3); term > 0; --term) {
      ExprId product = pool_.constant(pick(-3, 3));
      for (int factor = pick(1, 3); factor > 0; --factor) product = pool_.mul(product, pool_.var(vars[pick(0, 2)]));
      sum = pool_.add(sum, product);
    }
    int64_t least[3];
    for (int64_t& low : least) low = pick(-1, 2);
    const int64_t bound = pick(-6, 6);
    const auto low_of = [&](ExprId atom) { return least[pool_.var_of(atom).index - vars[0].index]; };
    if (!falls_from(pool_, terms(sum), bound, low_of)) continue;
    ++said;
    for (int64_t point = 0; point < 64; ++point) {
      const auto value = [&](VarId var) -> std::optional<int64_t> {
        const uint32_t i = var.index - vars[0].index;
        return least[i] + (point >> (2 * i) & 3);
      };
      EXPECT_LE(eval(pool_, sum, value).value(), bound);
    }
  }
  EXPECT_GT(said, 100);
}

}  // namespace
}  // namespace cresset::sym
