#include "loop/scalar_eval.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "loop/float8.h"
#include "loop/half.h"

namespace cresset::loop {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool is_f32(DType dtype) { return dtype == DType::F32; }

int64_t truncate_to_integer(DType to, double value) {
  const bool wide = to == DType::I64;
  const double limit = wide ? 0x1p63 : 0x1p31;
  const int64_t least = wide ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int32_t>::min();
  const double whole = std::trunc(value);
  const bool fits = whole >= -limit && whole < limit;
  return wrap_integer(to, fits ? static_cast<int64_t>(whole) : least);
}

Value cast(DType from, DType to, Value a) {
  Value out;
  if (to == DType::Bool) {
    out.integer = is_float(from) ? a.number != 0 : a.integer != 0;
  } else if (is_float(to)) {
    if (is_float(from))
      out.number = round_number(to, a.number);
    else
      out.number = is_f32(to) ? static_cast<double>(static_cast<float>(a.integer)) : static_cast<double>(a.integer);
  } else {
    out.integer = is_float(from) ? truncate_to_integer(to, a.number) : wrap_integer(to, a.integer);
  }
  return out;
}

Value bit_cast_value(DType from, DType to, Value a) {
  char bytes[8] = {};
  store_value(from, bytes, 0, a);
  return load_value(to, bytes, 0);
}

double round_to(DType narrow, double value) {
  const float f = static_cast<float>(value);
  if (narrow == DType::BF16) return from_bf16(to_bf16(f));
  if (narrow == DType::F16) return from_f16(to_f16(f));
  if (category(narrow) != DTypeCategory::Float8) return value;
  const Float8Format format = float8_format(narrow);
  return from_float8(format, to_float8(format, f));
}

double next_after(DType dtype, double a, double b) {
  return is_f32(dtype) ? std::nextafterf(static_cast<float>(a), static_cast<float>(b)) : std::nextafter(a, b);
}

double fma_number(DType dtype, double a, double b, double c) {
  if (!is_f32(dtype)) return std::fma(a, b, c);
  return std::fmaf(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
}

double remainder_number(double a, double b) {
  const double m = std::fmod(a, b);
  return m != 0 && (b < 0) != (m < 0) ? m + b : m;
}

double rsqrt_number(DType dtype, double a) { return 1.0 / round_number(dtype, std::sqrt(a)); }

double unary_number(const Scalar& s, double a) {
  switch (s.op) {
    case Op::RoundTo:
      return round_to(s.round, a);
    case Op::Neg:
      return -a;
    case Op::Abs:
      return std::fabs(a);
    case Op::Sign:
      return a > 0 ? 1 : a < 0 ? -1 : 0;
    case Op::Exp:
      return std::exp(a);
    case Op::Exp2:
      return std::exp2(a);
    case Op::Expm1:
      return std::expm1(a);
    case Op::Log:
      return std::log(a);
    case Op::Log2:
      return std::log2(a);
    case Op::Log10:
      return std::log10(a);
    case Op::Log1p:
      return std::log1p(a);
    case Op::Sqrt:
      return std::sqrt(a);
    case Op::Rsqrt:
      return rsqrt_number(s.dtype, a);
    case Op::Sin:
      return std::sin(a);
    case Op::Cos:
      return std::cos(a);
    case Op::Tan:
      return std::tan(a);
    case Op::Asin:
      return std::asin(a);
    case Op::Acos:
      return std::acos(a);
    case Op::Atan:
      return std::atan(a);
    case Op::Sinh:
      return std::sinh(a);
    case Op::Cosh:
      return std::cosh(a);
    case Op::Tanh:
      return std::tanh(a);
    case Op::Asinh:
      return std::asinh(a);
    case Op::Acosh:
      return std::acosh(a);
    case Op::Atanh:
      return std::atanh(a);
    case Op::Erf:
      return std::erf(a);
    case Op::Erfc:
      return std::erfc(a);
    case Op::Lgamma:
      return std::lgamma(a);
    case Op::Floor:
      return std::floor(a);
    case Op::Ceil:
      return std::ceil(a);
    case Op::Trunc:
      return std::trunc(a);
    case Op::Round:
      return std::nearbyint(a);
    default:
      CRESSET_CHECK(false, "operator has no meaning on one float");
  }
}

double binary_number(const Scalar& s, double a, double b) {
  switch (s.op) {
    case Op::Add:
      return a + b;
    case Op::Sub:
      return a - b;
    case Op::Mul:
      return a * b;
    case Op::Div:
      return a / b;
    case Op::Fmod:
      return std::fmod(a, b);
    case Op::Remainder:
      return remainder_number(a, b);
    case Op::Pow:
      return std::pow(a, b);
    case Op::Atan2:
      return std::atan2(a, b);
    case Op::Hypot:
      return std::hypot(a, b);
    case Op::CopySign:
      return std::copysign(a, b);
    case Op::NextAfter:
      return next_after(s.dtype, a, b);
    case Op::Maximum:
      return a != a || b != b ? kNan : std::fmax(a, b);
    case Op::Minimum:
      return a != a || b != b ? kNan : std::fmin(a, b);
    case Op::Fmax:
      return std::fmax(a, b);
    case Op::Fmin:
      return std::fmin(a, b);
    default:
      CRESSET_CHECK(false, "operator has no meaning on two floats");
  }
}

int64_t trunc_div(int64_t a, int64_t b) {
  if (b == 0) return a;
  return b == -1 ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : a / b;
}
int64_t trunc_mod(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
int64_t floor_mod(int64_t a, int64_t b) {
  const int64_t m = trunc_mod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
int64_t floor_div(int64_t a, int64_t b) {
  const int64_t q = trunc_div(a, b), m = trunc_mod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? q - 1 : q;
}

// The generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), with 10 rounds.
int64_t philox(int64_t seed, int64_t stream, int64_t position) {
  const auto half = [](int64_t v, int i) { return static_cast<uint32_t>(static_cast<uint64_t>(v) >> (32 * i)); };
  const auto counter = static_cast<int64_t>(static_cast<uint64_t>(position) >> 2);
  uint32_t words[4] = {half(counter, 0), half(counter, 1), half(stream, 0), half(stream, 1)};
  uint32_t keys[2] = {half(seed, 0), half(seed, 1)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{words[0]} * kPhiloxMultipliers[0];
    const uint64_t second = uint64_t{words[2]} * kPhiloxMultipliers[1];
    const uint32_t next[4] = {static_cast<uint32_t>(second >> 32) ^ words[1] ^ keys[0], static_cast<uint32_t>(second),
                              static_cast<uint32_t>(first >> 32) ^ words[3] ^ keys[1], static_cast<uint32_t>(first)};
    std::copy(next, next + 4, words);
    for (int k = 0; k < 2; ++k) keys[k] += kPhiloxKeySteps[k];
  }
  return words[position & 3];
}

int64_t shift(const Scalar& s, int64_t a, int64_t b) {
  const int64_t bits = byte_size(s.dtype) * 8;
  const bool outside = b < 0 || b >= bits;
  if (s.op == Op::ShiftLeft) return outside ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
  return outside ? (a < 0 ? -1 : 0) : a >> b;
}

int64_t binary_integer(const Scalar& s, int64_t a, int64_t b) {
  const uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (s.op) {
    case Op::Add:
      return static_cast<int64_t>(ua + ub);
    case Op::Sub:
      return static_cast<int64_t>(ua - ub);
    case Op::Mul:
      return static_cast<int64_t>(ua * ub);
    case Op::FloorDivInt:
      return floor_div(a, b);
    case Op::TruncDivInt:
      return trunc_div(a, b);
    case Op::Fmod:
      return trunc_mod(a, b);
    case Op::Remainder:
      return floor_mod(a, b);
    case Op::Maximum:
    case Op::Fmax:
      return std::max(a, b);
    case Op::Minimum:
    case Op::Fmin:
      return std::min(a, b);
    case Op::BitAnd:
      return a & b;
    case Op::BitOr:
      return a | b;
    case Op::BitXor:
      return a ^ b;
    case Op::ShiftLeft:
    case Op::ShiftRight:
      return shift(s, a, b);
    default:
      CRESSET_CHECK(false, "operator has no meaning on two integers");
  }
}

int64_t unary_integer(const Scalar& s, int64_t a) {
  switch (s.op) {
    case Op::Neg:
      return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
    case Op::Abs:
      return a < 0 ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : a;
    case Op::Sign:
      return (a > 0) - (a < 0);
    case Op::BitNot:
      return s.dtype == DType::Bool ? !a : ~a;
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
    case Op::Round:
      return a;
    default:
      CRESSET_CHECK(false, "operator has no meaning on one integer");
  }
}

template <class T>
bool compare(Op op, T a, T b) {
  switch (op) {
    case Op::Eq:
      return a == b;
    case Op::Ne:
      return a != b;
    case Op::Lt:
      return a < b;
    case Op::Le:
      return a <= b;
    case Op::Gt:
      return a > b;
    case Op::Ge:
      return a >= b;
    default:
      CRESSET_CHECK(false, "not a comparison");
  }
}

bool is_comparison(Op op) { return op >= Op::Eq && op <= Op::Ge; }

template <class T>
T read(const void* buffer, int64_t index) {
  T out;
  std::memcpy(&out, static_cast<const char*>(buffer) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return out;
}
template <class T>
void write(void* buffer, int64_t index, T value) {
  std::memcpy(static_cast<char*>(buffer) + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

int64_t wrap_integer(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::Bool:
      return value != 0;
    case DType::U8:
      return static_cast<uint8_t>(value);
    case DType::I8:
      return static_cast<int8_t>(value);
    case DType::I16:
      return static_cast<int16_t>(value);
    case DType::I32:
      return static_cast<int32_t>(value);
    default:
      return value;
  }
}

double round_number(DType dtype, double value) {
  return is_f32(dtype) ? static_cast<double>(static_cast<float>(value)) : value;
}

Value apply(const Scalar& s, DType from, Value a, Value b, Value c) {
  Value out;
  if (s.op == Op::Cast) return cast(from, s.dtype, a);
  if (s.op == Op::BitCast) return bit_cast_value(from, s.dtype, a);
  if (s.op == Op::Select) return a.integer ? b : c;
  if (is_comparison(s.op)) {
    out.integer = is_float(from) ? compare(s.op, a.number, b.number) : compare(s.op, a.integer, b.integer);
  } else if (s.op == Op::IsNan || s.op == Op::IsInf) {
    out.integer = is_float(from) && (s.op == Op::IsNan ? std::isnan(a.number) : std::isinf(a.number));
  } else if (s.op == Op::Fma) {
    if (is_float(from))
      out.number = fma_number(s.dtype, a.number, b.number, c.number);
    else
      out.integer = wrap_integer(
          s.dtype, static_cast<int64_t>(static_cast<uint64_t>(a.integer) * static_cast<uint64_t>(b.integer) +
                                        static_cast<uint64_t>(c.integer)));
  } else if (s.op == Op::Philox) {
    out.integer = philox(a.integer, b.integer, c.integer);
  } else if (is_float(from)) {
    out.number =
        round_number(s.dtype, arity(s.op) == 1 ? unary_number(s, a.number) : binary_number(s, a.number, b.number));
  } else {
    out.integer =
        wrap_integer(s.dtype, arity(s.op) == 1 ? unary_integer(s, a.integer) : binary_integer(s, a.integer, b.integer));
  }
  return out;
}

Value load_value(DType dtype, const void* buffer, int64_t i) {
  switch (dtype) {
    case DType::Bool:
      return {0, read<uint8_t>(buffer, i) != 0};
    case DType::U8:
      return {0, read<uint8_t>(buffer, i)};
    case DType::I8:
      return {0, read<int8_t>(buffer, i)};
    case DType::I16:
      return {0, read<int16_t>(buffer, i)};
    case DType::I32:
      return {0, read<int32_t>(buffer, i)};
    case DType::I64:
      return {0, read<int64_t>(buffer, i)};
    case DType::F16:
      return {from_f16(read<uint16_t>(buffer, i)), 0};
    case DType::BF16:
      return {from_bf16(read<uint16_t>(buffer, i)), 0};
    case DType::F32:
      return {read<float>(buffer, i), 0};
    case DType::F64:
      return {read<double>(buffer, i), 0};
    default:
      break;
  }
  CRESSET_CHECK(category(dtype) == DTypeCategory::Float8, "kernels hold no buffers of this dtype");
  return {from_float8(float8_format(dtype), read<uint8_t>(buffer, i)), 0};
}

void store_value(DType dtype, void* buffer, int64_t i, Value v) {
  switch (dtype) {
    case DType::Bool:
      return write<uint8_t>(buffer, i, v.integer != 0);
    case DType::U8:
      return write<uint8_t>(buffer, i, static_cast<uint8_t>(v.integer));
    case DType::I8:
      return write<int8_t>(buffer, i, static_cast<int8_t>(v.integer));
    case DType::I16:
      return write<int16_t>(buffer, i, static_cast<int16_t>(v.integer));
    case DType::I32:
      return write<int32_t>(buffer, i, static_cast<int32_t>(v.integer));
    case DType::I64:
      return write<int64_t>(buffer, i, v.integer);
    case DType::F16:
      return write<uint16_t>(buffer, i, to_f16(static_cast<float>(v.number)));
    case DType::BF16:
      return write<uint16_t>(buffer, i, to_bf16(static_cast<float>(v.number)));
    case DType::F32:
      return write<float>(buffer, i, static_cast<float>(v.number));
    case DType::F64:
      return write<double>(buffer, i, v.number);
    default:
      break;
  }
  CRESSET_CHECK(category(dtype) == DTypeCategory::Float8, "kernels hold no buffers of this dtype");
  write<uint8_t>(buffer, i, to_float8(float8_format(dtype), static_cast<float>(v.number)));
}

}  // namespace cresset::loop
