// Bits of integers and booleans.
#include "ops/families.h"
#include "ops/pointwise_types.h"

namespace cresset::ops {
namespace {

using loop::Op;

S shift_count_ok(S count, int64_t bits) { return both(ge(count, 0), lt(count, static_cast<double>(bits))); }

// Shifts by a negative count or by at least the width give the limit's value: no bits left, or copies of the sign.
S shift_left(S a, S count) {
  return select(shift_count_ok(count, byte_size(a.dtype()) * 8), binary(Op::ShiftLeft, a, count), a.number(0));
}
S shift_right(S a, S count) {
  const int64_t last = byte_size(a.dtype()) * 8 - 1;
  if (a.dtype() == DType::U8) return select(shift_count_ok(count, 8), binary(Op::ShiftRight, a, count), a.number(0));
  const S sign = binary(Op::ShiftRight, a, a.number(static_cast<double>(last)));
  return select(shift_count_ok(count, last), binary(Op::ShiftRight, a, count), sign);
}

constexpr OpTraits kForIntegers{.for_integers = true};

#define BITWISE(name, op)                                                                   \
  OpDef{.schema = "aten::bitwise_" name ".Tensor(Tensor self, Tensor other) -> Tensor",     \
        .op_class = OpClass::Pointwise,                                                     \
        .shape = shape_of < 2,                                                              \
        kBool | kInt,                                                                       \
        Out::Common >                                                                       \
        , .element = element2<apply2<Op::op>>, .traits = kForIntegers},                     \
      OpDef{.schema = "aten::bitwise_" name ".Scalar(Tensor self, Scalar other) -> Tensor", \
            .op_class = OpClass::Pointwise,                                                 \
            .shape = shape_of < 2,                                                          \
            kBool | kInt,                                                                   \
            Out::Common >                                                                   \
            , .element = element2<apply2<Op::op>>, .traits = kForIntegers},                 \
      OpDef {                                                                               \
    .schema = "aten::bitwise_" name ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor",  \
    .op_class = OpClass::Pointwise, .shape = shape_of < 2, kBool | kInt, Out::Common >,     \
    .element = element2<apply2<Op::op>>, .traits = kForIntegers                             \
  }
#define SHIFT(name, function)                                                                               \
  OpDef{.schema = "aten::bitwise_" name ".Tensor(Tensor self, Tensor other) -> Tensor",                     \
        .op_class = OpClass::Pointwise,                                                                     \
        .shape = shape_of<2, kInt, Out::Common>,                                                            \
        .element = element2<function>,                                                                      \
        .traits = kForIntegers},                                                                            \
      OpDef{.schema = "aten::bitwise_" name ".Tensor_Scalar(Tensor self, Scalar other) -> Tensor",          \
            .op_class = OpClass::Pointwise,                                                                 \
            .shape = shape_of<2, kInt, Out::Common>,                                                        \
            .element = element2<function>,                                                                  \
            .traits = kForIntegers},                                                                        \
      OpDef {                                                                                               \
    .schema = "aten::bitwise_" name ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor",                  \
    .op_class = OpClass::Pointwise, .shape = shape_of<2, kInt, Out::Common>, .element = element2<function>, \
    .traits = kForIntegers                                                                                  \
  }

const OpDef kPointwiseBitwiseOps[] = {
    BITWISE("and", BitAnd),
    BITWISE("or", BitOr),
    BITWISE("xor", BitXor),
    SHIFT("left_shift", shift_left),
    SHIFT("right_shift", shift_right),
    {.schema = "aten::bitwise_not(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of < 1,
     kBool | kInt,
     Out::Common >
     , .element = element1<apply1<Op::BitNot>>, .traits = kForIntegers},
};

}  // namespace

std::span<const OpDef> pointwise_bitwise_ops() { return kPointwiseBitwiseOps; }

}  // namespace cresset::ops
