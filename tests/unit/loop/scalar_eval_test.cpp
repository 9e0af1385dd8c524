#include "loop/scalar_eval.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "loop/float8.h"
#include "loop/half.h"

namespace cresset::loop {
namespace {

Value real(double v) { return {v, 0}; }
Value whole(int64_t v) { return {0, v}; }

int64_t integers(Op op, DType dtype, int64_t a, int64_t b = 0) {
  return apply({.op = op, .dtype = dtype}, dtype, whole(a), whole(b), {}).integer;
}
double floats(Op op, DType dtype, double a, double b = 0, double c = 0) {
  return apply({.op = op, .dtype = dtype}, dtype, real(a), real(b), real(c)).number;
}

TEST(ScalarEval, IntegersWrapAndDivideAsSpecified) {
  EXPECT_EQ(integers(Op::Add, DType::U8, 250, 10), 4);
  EXPECT_EQ(integers(Op::Neg, DType::I8, -128), -128);
  EXPECT_EQ(integers(Op::FloorDivInt, DType::I64, -7, 2), -4);
  EXPECT_EQ(integers(Op::TruncDivInt, DType::I64, -7, 2), -3);
  EXPECT_EQ(integers(Op::Remainder, DType::I64, -7, 2), 1);
  EXPECT_EQ(integers(Op::Fmod, DType::I64, -7, 2), -1);
  EXPECT_EQ(integers(Op::ShiftLeft, DType::I32, 1, 32), 0);
  EXPECT_EQ(integers(Op::ShiftRight, DType::I32, -5, 99), -1);
}

TEST(ScalarEval, FloatsRoundToTheirType) {
  EXPECT_EQ(floats(Op::Add, DType::F32, 1, 0x1p-25), 1);
  EXPECT_EQ(floats(Op::Remainder, DType::F64, -7, 2), 1);
  EXPECT_TRUE(std::isnan(floats(Op::Maximum, DType::F32, NAN, 1)));
  EXPECT_EQ(floats(Op::Fmax, DType::F32, NAN, 1), 1);
  EXPECT_EQ(floats(Op::Sign, DType::F32, NAN), 0);
  EXPECT_EQ(floats(Op::Round, DType::F32, 2.5), 2);
}

TEST(ScalarEval, HalfConversionsRoundToNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint16_t h = static_cast<uint16_t>(bits);
    const float wide = from_f16(h), brain = from_bf16(h);
    if (wide == wide)
      EXPECT_EQ(to_f16(wide), h);
    else
      EXPECT_GT(to_f16(wide) & 0x7fff, 0x7c00);
    if (brain == brain)
      EXPECT_EQ(to_bf16(brain), h);
    else
      EXPECT_GT(to_bf16(brain) & 0x7fff, 0x7f80);
  }
  EXPECT_EQ(to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(to_f16(1.0f + 0x1p-11f), 0x3c00);  // a tie goes to even
  EXPECT_EQ(to_f16(1.0f + 3 * 0x1p-11f), 0x3c02);
  EXPECT_EQ(to_f16(0x1p-25f), 0);  // a tie at half the least subnormal
  EXPECT_EQ(to_f16(0x1.8p-25f), 1);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
}

TEST(ScalarEval, Float8ConversionsRoundToNearestEven) {
  for (const DType dtype : {DType::F8E4M3FN, DType::F8E5M2, DType::F8E4M3FNUZ, DType::F8E5M2FNUZ}) {
    const Float8Format format = float8_format(dtype);
    std::vector<float> numbers;  // of the positive codes, ascending
    for (uint32_t code = 0; code < 0x100; ++code) {
      const float wide = from_float8(format, static_cast<uint8_t>(code));
      const uint8_t back = to_float8(format, wide);
      EXPECT_EQ(wide == wide ? back : back & 0x7f, wide == wide ? code : format.nan & 0x7f) << to_string(dtype);
      if (code < 0x80 && std::isfinite(wide)) numbers.push_back(wide);
    }
    for (size_t i = 0; i + 1 < numbers.size(); ++i) {
      const float low = numbers[i], high = numbers[i + 1], middle = low + (high - low) / 2;
      EXPECT_EQ(to_float8(format, std::nextafter(middle, low)), i);
      EXPECT_EQ(to_float8(format, middle), i % 2 == 0 ? i : i + 1);
      EXPECT_EQ(to_float8(format, std::nextafter(middle, high)), i + 1);
    }
    EXPECT_NE(from_float8(format, to_float8(format, 1e9f)), numbers.back());  // no saturation
  }
}

TEST(ScalarEval, CastsOutOfRange) {
  auto cast = [](DType to, double v) {
    return apply({.op = Op::Cast, .dtype = to}, DType::F32, real(v), {}, {}).integer;
  };
  EXPECT_EQ(cast(DType::U8, -5.5), 251);
  EXPECT_EQ(cast(DType::U8, 300), 44);
  EXPECT_EQ(cast(DType::I32, 1e20), INT32_MIN);
  EXPECT_EQ(cast(DType::Bool, NAN), 1);
}

}  // namespace
}  // namespace cresset::loop
