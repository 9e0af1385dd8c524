// Arithmetic on two operands other than division and powers.
#include <cmath>

#include "ops/families.h"
#include "ops/pointwise_types.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using loop::Op;

// On booleans addition is "or" and multiplication is "and".
S add(S a, S b) { return a.dtype() == DType::Bool ? either(a, b) : a + b; }
S sub(S a, S b) { return a - b; }
S rsub(S a, S b) { return b - a; }
S mul(S a, S b) { return a.dtype() == DType::Bool ? both(a, b) : a * b; }

// The product is not rounded, as in ATen's kernels.
S times_plus(S a, S b, S c) {
  return a.with(a.builder->kernel().add({.op = Op::Fma, .dtype = a.dtype(), .a = a.id, .b = b.id, .c = c.id}));
}

// self <op> alpha * other, alpha not rounded to F16/BF16.
template <S (*F)(S, S), size_t Scaled>
loop::ScalarId scaled(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType dtype = context.result_type(0).dtype;
  const DType number = compute_dtype(dtype);
  S operands[2] = {operand(context, args, 0, index, dtype),
                   operand(context, args, 1, index, args.is_tensor(1) ? dtype : number)};
  S& target = operands[Scaled];
  if (constant_number(args.graph(), args[2]) != 1.0) {
    const S alpha = number_arg(context, args, 2, target);
    if (is_float(target.dtype())) return times_plus(target, F == add ? alpha : -alpha, operands[1 - Scaled]).id;
    target = target * alpha;
  }
  return F(operands[0], operands[1]).id;
}

constexpr size_t kReversed[] = {1, 0};

bool is_bool(const OpArgs& args, size_t i) {
  return args.is_tensor(i) ? args.tensor(i).dtype == DType::Bool : std::holds_alternative<bool>(args[i]);
}

template <size_t Scaled>
Result<Types> scaled_shape(ShapeContext& shapes, const OpArgs& args) {
  const auto order =
      Scaled == 0 ? std::span<const size_t>(kReversed) : first_operands<2>();  // rsub is sub(other, self)
  CRESSET_TRY(Types types, promoted_shape(shapes, args, order, kReal, Out::Common));
  const bool whole = !std::holds_alternative<double>(args[2]);
  if (types[0].dtype == DType::Bool && constant_number(args.graph(), args[2]) != 1.0)
    return shapes.unsupported("alpha on booleans");
  if (is_integral(types[0].dtype) && !whole) return shapes.invalid("a fractional alpha on integers");
  return types;
}

template <size_t Scaled>
Result<Types> difference_shape(ShapeContext& shapes, const OpArgs& args) {
  if (is_bool(args, 0) || is_bool(args, 1)) return shapes.invalid("subtraction of booleans");
  return scaled_shape<Scaled>(shapes, args);
}

// (1 - weight) * self + weight * end, computed from the nearer end, so that both ends are reached exactly.
loop::ScalarId lerp(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType dtype = context.result_type(0).dtype;
  const S self = operand(context, args, 0, index, dtype), end = operand(context, args, 1, index, dtype);
  const S weight = args.is_tensor(2) ? operand(context, args, 2, index, dtype) : number_arg(context, args, 2, self);
  const S span = end - self;
  return select(lt(abs(weight), 0.5), self + weight * span, end - span * (1.0 - weight)).id;
}

loop::ScalarId addcmul(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType dtype = context.result_type(0).dtype;
  const S self = operand(context, args, 0, index, dtype);
  const S a = operand(context, args, 1, index, dtype), b = operand(context, args, 2, index, dtype);
  if (constant_number(args.graph(), args[3]) == 1.0) return (self + a * b).id;
  return (self + number_arg(context, args, 3, self) * a * b).id;
}

loop::ScalarId addcdiv(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType dtype = context.result_type(0).dtype;
  const S self = operand(context, args, 0, index, dtype);
  const S a = operand(context, args, 1, index, dtype), b = operand(context, args, 2, index, dtype);
  if (constant_number(args.graph(), args[3]) == 1.0) return (self + a / b).id;
  return (self + number_arg(context, args, 3, self) * a / b).id;
}

// For booleans the greater value is "or", the smaller "and".
template <Op O, bool Greater>
S extreme(S a, S b) {
  if (a.dtype() == DType::Bool) return Greater ? either(a, b) : both(a, b);
  if (is_float(a.dtype())) return binary(O, a, b);
  return binary(Greater ? Op::Maximum : Op::Minimum, a, b);
}

S xlogy(S x, S y) { return select(is_nan(y), y, select(eq(x, 0), x.number(0), x * log(y))); }
S xlog1py(S x, S y) { return select(is_nan(y), y, select(eq(x, 0), x.number(0), x * log1p(y))); }
S heaviside(S x, S at_zero) { return select(eq(x, 0), at_zero, gt(x, 0).cast(x.dtype())); }
// Equal infinities would give inf - inf.
S logaddexp(S a, S b) {
  const S sum = maximum(a, b) + log1p(exp(-abs(a - b)));
  return select(both(unary(Op::IsInf, a), eq(a, b)), a, sum);
}

// x + 0 is not x for x = -0; x - 0 is x.
bool adds_integer_zero(const OpArgs& args) { return second_is_zero(args) && is_integral(args.tensor(0).dtype); }

#define SCALED(name, rule, function, scaled_operand, ...)                                          \
  OpDef{.schema = "aten::" name ".Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", \
        .op_class = OpClass::Pointwise,                                                            \
        .shape = rule<scaled_operand>,                                                             \
        .element = scaled<function, scaled_operand> __VA_OPT__(, .is_no_op =) __VA_ARGS__},        \
      OpDef {                                                                                      \
    .schema = "aten::" name ".Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",        \
    .op_class = OpClass::Pointwise, .shape = rule<scaled_operand>,                                 \
    .element = scaled<function, scaled_operand> __VA_OPT__(, .is_no_op =) __VA_ARGS__              \
  }
#define BINARY(text, accepted, out, function, is_heavy)                                                        \
  OpDef {                                                                                                      \
    .schema = "aten::" text " -> Tensor", .op_class = OpClass::Pointwise, .shape = shape_of<2, accepted, out>, \
    .element = element2<function>, .heavy = is_heavy                                                           \
  }

const OpDef kPointwiseBinaryOps[] = {
    SCALED("add", scaled_shape, add, 1, adds_integer_zero),
    SCALED("sub", difference_shape, sub, 1, second_is_zero),
    SCALED("rsub", difference_shape, rsub, 0),
    {.schema = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<2, kReal, Out::Common>,
     .element = arithmetic2<mul>,
     .is_no_op = second_is_one},
    {.schema = "aten::mul.Scalar(Tensor self, Scalar other) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<2, kReal, Out::Common>,
     .element = arithmetic2<mul>,
     .is_no_op = second_is_one},
    BINARY("maximum(Tensor self, Tensor other)", kReal, Out::Common, (extreme<Op::Maximum, true>), false),
    BINARY("minimum(Tensor self, Tensor other)", kReal, Out::Common, (extreme<Op::Minimum, false>), false),
    BINARY("fmax(Tensor self, Tensor other)", kReal, Out::Common, (extreme<Op::Fmax, true>), false),
    BINARY("fmin(Tensor self, Tensor other)", kReal, Out::Common, (extreme<Op::Fmin, false>), false),
    BINARY("atan2(Tensor self, Tensor other)", kReal, Out::Float, apply2<Op::Atan2>, true),
    BINARY("hypot(Tensor self, Tensor other)", kFloat, Out::Common, apply2<Op::Hypot>, true),
    {.schema =
         "aten::nextafter(Tensor self, Tensor other) -> Tensor",  // kernels hold bf16 as f32, whose next is nearer
     .op_class = OpClass::Extern,
     .shape = shape_of<2, kFloat, Out::Common>},
    BINARY("copysign.Tensor(Tensor self, Tensor other)", kReal, Out::Float, apply2<Op::CopySign>, false),
    BINARY("copysign.Scalar(Tensor self, Scalar other)", kReal, Out::Float, apply2<Op::CopySign>, false),
    {.schema = "aten::heaviside(Tensor self, Tensor values) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = same_dtype_shape_of<2, kNumeric>,
     .element = element2<heaviside>,
     .steps = true},
    BINARY("xlogy.Tensor(Tensor self, Tensor other)", kReal, Out::Float, xlogy, true),
    BINARY("xlogy.Scalar_Self(Scalar self, Tensor other)", kReal, Out::Float, xlogy, true),
    BINARY("xlogy.Scalar_Other(Tensor self, Scalar other)", kReal, Out::Float, xlogy, true),
    BINARY("special_xlog1py(Tensor self, Tensor other)", kReal, Out::Float, xlog1py, true),
    BINARY("special_xlog1py.self_scalar(Scalar self, Tensor other)", kReal, Out::Float, xlog1py, true),
    BINARY("special_xlog1py.other_scalar(Tensor self, Scalar other)", kReal, Out::Float, xlog1py, true),
    BINARY("logaddexp(Tensor self, Tensor other)", kFloat, Out::Common, logaddexp, true),
    {.schema = "aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = same_dtype_shape_of<2, kFloat>,
     .element = lerp},
    {.schema = "aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = same_dtype_shape_of<3, kFloat>,
     .element = lerp},
    {.schema = "aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<3, kNumeric, Out::Common>,
     .element = addcmul},
    {.schema = "aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<3, kFloat, Out::Common>,
     .element = addcdiv},
};

}  // namespace

std::span<const OpDef> pointwise_binary_ops() { return kPointwiseBinaryOps; }

}  // namespace cresset::ops
