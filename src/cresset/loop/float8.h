// Conversions between f32 and the 8-bit floats of torch that have a sign, rounding to nearest even. Numbers beyond the
// range become the format's overflow code. Torch's conversion to F8E4M3FN saturates in some versions:
// ScalarBuilder::cast then limits the number first. Source of the formats: Micikevicius et al., "FP8 Formats for Deep
// Learning" (2022), and torch's c10/util/Float8_*.h.
#pragma once

#include <bit>
#include <cstdint>

#include "base/dtype.h"

namespace cresset::loop {

inline constexpr double kGreatestF8E4M3FN = 448;
// Whether the conversion of this process's torch saturates; set once, before kernels are made.
inline bool f8e4m3fn_saturates = false;

struct Float8Format {
  int mantissa;       // bits
  int bias;           // of the exponent
  uint32_t limit;     // bits of the f32 from which on numbers overflow
  uint32_t overflow;  // their code, without the sign
  uint32_t nan;       // the code of NaN, without the sign; 0x80: that of the negative zero, which then does not exist
  bool has_infinity;

  bool has_negative_zero() const { return nan != 0x80; }
  // The greatest code without a sign that is no NaN, where NaN has a code of its own.
  uint32_t before_nan() const { return has_infinity ? overflow : nan - 1; }
  uint32_t least_normal() const { return static_cast<uint32_t>(128 - bias) << 23; }
  // Bits of the f32 which, added to a subnormal number, leaves the rounded code in the low bits.
  uint32_t magic() const { return static_cast<uint32_t>(151 - bias - mantissa) << 23; }
  float least_subnormal() const { return std::bit_cast<float>(static_cast<uint32_t>(128 - bias - mantissa) << 23); }
};

inline Float8Format float8_format(DType dtype) {
  switch (dtype) {
    case DType::F8E5M2:
      return {2, 15, 0x47800000, 0x7c, 0x7f, true};
    case DType::F8E4M3FNUZ:
      return {3, 8, 0x43800000, 0x80, 0x80, false};
    case DType::F8E5M2FNUZ:
      return {2, 16, 0x47800000, 0x80, 0x80, false};
    default:
      return {3, 7, 0x43f00000, 0x7f, 0x7f, false};
  }
}

inline uint8_t to_float8(const Float8Format& f, float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffff;
  const int shift = 23 - f.mantissa;
  uint32_t code = 0;
  if (magnitude > 0x7f800000) {
    code = f.nan;
  } else if (magnitude >= f.limit) {
    code = f.overflow;
  } else if (magnitude < f.least_normal()) {
    code = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(f.magic())) - f.magic();
  } else {
    const uint32_t rounded = magnitude + (1u << (shift - 1)) - 1 + (magnitude >> shift & 1);
    code = (rounded - (static_cast<uint32_t>(127 - f.bias) << 23)) >> shift;
  }
  return static_cast<uint8_t>(code == 0 && !f.has_negative_zero() ? 0 : code | sign);
}

inline float from_float8(const Float8Format& f, uint8_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x80) << 24, magnitude = code & 0x7f;
  const bool nan = f.has_negative_zero() ? magnitude > f.before_nan() : code == f.nan;
  if (nan) return std::bit_cast<float>(sign | 0x7fc00000);
  if (f.has_infinity && magnitude == f.overflow) return std::bit_cast<float>(sign | 0x7f800000);
  const uint32_t normal = (magnitude << (23 - f.mantissa)) + (static_cast<uint32_t>(127 - f.bias) << 23);
  const uint32_t small = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * f.least_subnormal());
  return std::bit_cast<float>(sign | (magnitude >> f.mantissa == 0 ? small : normal));
}

}  // namespace cresset::loop
