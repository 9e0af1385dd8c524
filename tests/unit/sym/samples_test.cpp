#include "sym/samples.h"

#include <gtest/gtest.h>

namespace cresset::sym {
namespace {

class SamplesTest : public ::testing::Test {
 protected:
  ExprId n(int64_t value) { return pool_.constant(value); }
  ExprId size(int64_t hint, Interval range = Interval::size()) {
    const VarId var = pool_.new_var();
    samples_.declare(var, range, hint);
    return pool_.var(var);
  }
  ExprId index(ExprId extent) {
    const VarId var = pool_.new_var();
    samples_.declare_index(var, extent);
    return pool_.var(var);
  }
  ExprPool pool_;
  Samples samples_{pool_};
};

TEST_F(SamplesTest, HintsRefute) {
  const ExprId a = size(10), b = size(3);
  EXPECT_TRUE(samples_.exceeds(a, 9));
  EXPECT_FALSE(samples_.exceeds(a, 10));
  EXPECT_TRUE(samples_.exceeds(pool_.sub(a, pool_.mul(b, b)), 0));
  EXPECT_FALSE(samples_.exceeds(pool_.sub(b, a), 0));
}

TEST_F(SamplesTest, AnIndexTakesBothItsEnds) {
  const ExprId s = size(6), i = index(s);
  EXPECT_TRUE(samples_.exceeds(i, 4));
  EXPECT_FALSE(samples_.exceeds(i, 5));
  EXPECT_TRUE(samples_.exceeds(pool_.neg(i), -1));
  EXPECT_FALSE(samples_.exceeds(pool_.sub(i, s), -1));
  EXPECT_TRUE(samples_.exceeds(pool_.mod(i, n(4)), 2));
  EXPECT_FALSE(samples_.exceeds(pool_.mod(i, n(4)), 3));
}

TEST_F(SamplesTest, SayNothingOfAnEmptyLoop) {
  const ExprId i = index(size(0));
  EXPECT_FALSE(samples_.exceeds(i, -100));
  EXPECT_FALSE(samples_.exceeds(pool_.neg(i), -100));
}

TEST_F(SamplesTest, WhatIsLearnedDropsPoints) {
  const ExprId i = index(n(9));
  EXPECT_TRUE(samples_.exceeds(i, 7));
  samples_.learn(pool_.le(i, n(7)));
  EXPECT_FALSE(samples_.exceeds(i, 7));
  EXPECT_TRUE(samples_.exceeds(i, 3));
  samples_.learn(pool_.ge(i, n(100)));
  EXPECT_FALSE(samples_.exceeds(i, -100));
}

TEST_F(SamplesTest, SayNothingOfHugeNumbersAndDivisionByZero) {
  const ExprId a = size(INT64_MAX - 1), zero = size(0);
  EXPECT_FALSE(samples_.exceeds(a, 0));
  EXPECT_FALSE(samples_.exceeds(pool_.mul(size(int64_t{1} << 40), size(int64_t{1} << 40)), 0));
  EXPECT_FALSE(samples_.exceeds(pool_.floor_div(size(5), zero), -100));
}

TEST_F(SamplesTest, ASizeWithoutAHintStaysInItsRange) {
  const VarId var = pool_.new_var();
  samples_.declare(var, {2, 4}, std::nullopt);
  EXPECT_TRUE(samples_.exceeds(pool_.var(var), 1));
  EXPECT_FALSE(samples_.exceeds(pool_.var(var), 4));
  EXPECT_FALSE(samples_.exceeds(pool_.neg(pool_.var(var)), -2));
}

}  // namespace
}  // namespace cresset::sym
