// The semantics of scalar operators on numbers, for the interpreter and for constant folding.
#pragma once

#include <span>

#include "loop/kernel.h"

namespace cresset::loop {

// A scalar's value: `number` for float dtypes (an f32 value is held exactly), `integer` for integers (in range of the
// dtype) and bool (0 or 1).
struct Value {
  double number = 0;
  int64_t integer = 0;
};

// `scalar` is any operator but Const, Size, Load and Reduce; `from` is the dtype of its first operand. Where C leaves a
// result undefined, the result is fixed here. A shift by an amount outside [0, bits) shifts everything out. An integer
// x / 0 is x / 1. A conversion from float to integer out of range gives the least integer; types under 32 bits convert
// through i32.
inline constexpr uint32_t kPhiloxMultipliers[2] = {0xD2511F53, 0xCD9E8D57};
inline constexpr uint32_t kPhiloxKeySteps[2] = {0x9E3779B9, 0xBB67AE85};

Value apply(const Scalar& scalar, DType from, Value a, Value b, Value c);

Value load_value(DType dtype, const void* buffer, int64_t index);  // f16/bf16 widen to f32
void store_value(DType dtype, void* buffer, int64_t index, Value value);

int64_t wrap_integer(DType dtype, int64_t value);  // two's complement wrap into the dtype; bool: != 0
double round_number(DType dtype, double value);    // f32: rounded to float

}  // namespace cresset::loop
