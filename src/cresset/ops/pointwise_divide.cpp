// Division and remainders. An integer division whose divisor may be zero goes through ATen, which raises; a kernel
// would trap.
#include <algorithm>
#include <cmath>

#include "ops/families.h"
#include "ops/pointwise_types.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using loop::Op;

S divide(S a, S b) { return a / b; }

// Rounds down without the error of floor(a / b) when the quotient rounds up to an integer: the remainder is subtracted
// first. A zero quotient keeps the sign of a / b.
S floor_divide(S a, S b) {
  if (!is_float(a.dtype())) return binary(Op::FloorDivInt, a, b);
  const S quotient = a / b;
  const S remainder = binary(Op::Fmod, a, b);
  const S exact = (a - remainder) / b;
  const S wrong_side = both(ne(remainder, 0), ne(lt(b, 0), lt(remainder, 0)));
  const S down = select(wrong_side, exact - 1.0, exact);
  const S whole = floor(down);
  const S nearest = select(gt(down - whole, 0.5), whole + 1.0, whole);
  const S rounded = select(eq(down, 0), binary(Op::CopySign, a.number(0), quotient), nearest);
  return select(eq(b, 0), quotient, rounded);
}

S trunc_divide(S a, S b) { return is_float(a.dtype()) ? trunc(a / b) : binary(Op::TruncDivInt, a, b); }

bool divisor_is_nonzero(ShapeContext& shapes, const graph::Arg& divisor) {
  if (const auto* e = std::get_if<sym::ExprId>(&divisor))
    return shapes.decided(shapes.pool().ne(*e, shapes.pool().constant(0))).value_or(false);
  const std::optional<double> number = constant_number(shapes.graph(), divisor);
  return number && *number != 0;
}

// Rounding divisions and remainders keep integers.
Result<Types> whole_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(Types types, (shape_of<2, kNumeric, Out::Common>(shapes, args)));
  if (is_integral(types[0].dtype) && !divisor_is_nonzero(shapes, args[1]))
    return shapes.unsupported("an integer division by a value that may be zero");
  return types;
}

Result<Types> mode_shape(ShapeContext& shapes, const OpArgs& args) {
  if (args.is_none(2)) return shape_of<2, kReal, Out::Float>(shapes, args);
  if (args.text(2) != "floor" && args.text(2) != "trunc")
    return shapes.invalid("rounding_mode must be None, 'trunc' or 'floor'");
  return whole_shape(shapes, args);
}

bool is_one_number(ElementContext& context, const graph::Arg& operand) {
  const auto* tensor = std::get_if<graph::ValueId>(&operand);
  if (tensor == nullptr) return true;
  const std::vector<sym::ExprId>& sizes = context.graph().type(*tensor).sizes;
  return std::all_of(sizes.begin(), sizes.end(),
                     [&](sym::ExprId size) { return context.graph().pool().is_const(size, 1); });
}

// For 16-bit floats eager mode rounds the quotient before it truncates, except for a single divisor.
loop::ScalarId truncated_element(ElementContext& context, const OpArgs& args, size_t result, const Index& index) {
  const DType dtype = context.result_type(result).dtype, wide = compute_dtype(dtype);
  if (wide == dtype || is_one_number(context, args[1])) return arithmetic2<trunc_divide>(context, args, result, index);
  loop::ScalarBuilder& scalars = context.scalars();
  const loop::ScalarId quotient =
      scalars.binary(Op::Div, context.operand(args, 0, index, wide), context.operand(args, 1, index, wide));
  return scalars.unary(Op::Trunc, scalars.cast(quotient, dtype));
}

loop::ScalarId mode_element(ElementContext& context, const OpArgs& args, size_t result, const Index& index) {
  if (args.is_none(2)) return arithmetic2<divide>(context, args, result, index);
  return args.text(2) == "floor" ? arithmetic2<floor_divide>(context, args, result, index)
                                 : truncated_element(context, args, result, index);
}

constexpr OpTraits kDivides{.raises = Raises::Divisor};

#define WHOLE(text, rule)                                                                                        \
  OpDef {                                                                                                        \
    .schema = "aten::" text " -> Tensor", .op_class = OpClass::Pointwise, .shape = whole_shape, .element = rule, \
    .steps = true, .traits = kDivides                                                                            \
  }

const OpDef kPointwiseDivideOps[] = {
    {.schema = "aten::div.Tensor(Tensor self, Tensor other) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<2, kReal, Out::Float>,
     .element = arithmetic2<divide>,
     .is_no_op = second_is_one},
    {.schema = "aten::div.Scalar(Tensor self, Scalar other) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<2, kReal, Out::Float>,
     .element = arithmetic2<divide>,
     .is_no_op = second_is_one},
    {.schema = "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = mode_shape,
     .element = mode_element,
     .steps = true,
     .traits = kDivides},
    {.schema = "aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = mode_shape,
     .element = mode_element,
     .steps = true,
     .traits = kDivides},
    WHOLE("floor_divide(Tensor self, Tensor other)", arithmetic2<floor_divide>),
    WHOLE("floor_divide.Scalar(Tensor self, Scalar other)", arithmetic2<floor_divide>),
    WHOLE("remainder.Tensor(Tensor self, Tensor other)", element2<apply2<Op::Remainder>>),
    WHOLE("remainder.Scalar(Tensor self, Scalar other)", element2<apply2<Op::Remainder>>),
    WHOLE("remainder.Scalar_Tensor(Scalar self, Tensor other)", element2<apply2<Op::Remainder>>),
    WHOLE("fmod.Tensor(Tensor self, Tensor other)", element2<apply2<Op::Fmod>>),
    WHOLE("fmod.Scalar(Tensor self, Scalar other)", element2<apply2<Op::Fmod>>),
};

}  // namespace

std::span<const OpDef> pointwise_divide_ops() { return kPointwiseDivideOps; }

}  // namespace cresset::ops
