#include "sym/scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace cresset::sym {
namespace {

// What the fraction gives against what doubles give, over small sizes and random large ones.
void expect_exact(double c, bool ceil) {
  const std::optional<Scale> scale = scale_of(c, ceil);
  if (!scale) return;
  std::mt19937_64 random(7);
  for (int64_t i = 0; i < 30000; ++i) {
    const int64_t n = i < 20000 ? i : static_cast<int64_t>(random() % static_cast<uint64_t>(kLargestScaled));
    if (n >= scale->below) continue;
    const double product = static_cast<double>(n) * c;
    const int64_t expected = static_cast<int64_t>(ceil ? std::ceil(product) : std::floor(product));
    const auto wide = static_cast<__int128>(n) * scale->numerator;
    const int64_t got = static_cast<int64_t>((wide + (ceil ? scale->denominator - 1 : 0)) / scale->denominator);
    ASSERT_EQ(got, expected) << n << " * " << c;
  }
}

TEST(Scale, FractionsTellWhatDoublesGive) {
  for (int64_t q = 1; q <= 120; ++q) {
    for (int64_t p = 1; p <= 3 * q; p += 1 + q / 9) {
      expect_exact(static_cast<double>(p) / static_cast<double>(q), false);
      expect_exact(static_cast<double>(p) / static_cast<double>(q), true);
    }
  }
}

TEST(Scale, MostFactorsServeAllSizes) {
  for (const double c : {1.3, 1.1, 0.6, 1.0 / 3, 0.85, 2.2, 3.3}) {
    ASSERT_TRUE(scale_of(c, false).has_value()) << c;
    EXPECT_EQ(scale_of(c, false)->below, kLargestScaled) << c;
  }
}

// 90 * 0.7 is 62.99999999999999 in doubles, where 10 * 0.7 is 7.
TEST(Scale, AnErrorThatShowsBoundsTheSizes) {
  const std::optional<Scale> scale = scale_of(0.7, false);
  ASSERT_TRUE(scale.has_value());
  EXPECT_EQ(scale->numerator, 7);
  EXPECT_EQ(scale->denominator, 10);
  EXPECT_EQ(scale->below, 90);
}

TEST(Scale, WhatIsNoFractionIsRefused) {
  EXPECT_FALSE(scale_of(3.14159265358979, false).has_value());
  EXPECT_FALSE(scale_of(0.0, false).has_value());
  EXPECT_FALSE(scale_of(-1.5, false).has_value());
  EXPECT_FALSE(scale_of(1e9, true).has_value());
  EXPECT_FALSE(scale_of(std::nan(""), true).has_value());
}

TEST(Scale, FirstSize) {
  EXPECT_EQ(first_size([](double n) { return n * 1.3 > 5; }), 4);
  EXPECT_EQ(first_size([](double n) { return n > 2.5; }), 3);
  EXPECT_EQ(first_size([](double) { return true; }), 0);
  EXPECT_EQ(first_size([](double n) { return n < 0; }), std::nullopt);
}

}  // namespace
}  // namespace cresset::sym
