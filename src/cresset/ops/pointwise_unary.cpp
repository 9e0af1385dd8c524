// Functions of a single element: elementary functions, rounding, signs.
#include <cmath>
#include <numbers>

#include "ops/families.h"
#include "ops/pointwise_types.h"

namespace cresset::ops {
namespace {

using loop::Op;

S reciprocal(S x) { return 1.0 / x; }
S frac(S x) { return x - trunc(x); }
S sinc(S x) {
  const S product = std::numbers::pi * x;
  return select(eq(x, 0), x.number(1), unary(Op::Sin, product) / product);
}
S entropy(S x) {
  return select(is_nan(x), x, select(gt(x, 0), -x * log(x), select(eq(x, 0), x.number(0), x.number(-INFINITY))));
}
S deg2rad(S x) { return x * (std::numbers::pi / 180); }
S rad2deg(S x) { return x * (180 / std::numbers::pi); }

// Rounding leaves integers unchanged.
template <Op O>
S rounded(S x) {
  return is_float(x.dtype()) ? unary(O, x) : x;
}

// sign(NaN) is 0 in ATen: (0 < x) - (x < 0).
S sign(S x) {
  if (x.dtype() == DType::Bool) return x;
  return select(gt(x, 0), x.number(1), select(lt(x, 0), x.number(-1), x.number(0)));
}

S logit(S x, ElementContext& context, const OpArgs& args) {
  if (args.is_none(1)) return log(x / (1.0 - x));
  const S eps = number_arg(context, args, 1, x);
  const S clamped = select(lt(x, eps), eps, select(gt(x, 1.0 - eps), 1.0 - eps, x));  // in this order: eps may be 0.7
  return log(clamped / (1.0 - clamped));
}

double greatest(DType dtype) {
  switch (dtype) {
    case DType::F16:
      return 65504.0;
    case DType::BF16:
      return 0x1.FEp127;
    case DType::F32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

loop::ScalarId nan_to_num(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType dtype = context.result_type(0).dtype;
  const S x = operand(context, args, 0, index, dtype);
  if (!is_float(dtype)) return x.id;
  const auto value = [&](size_t i, double otherwise) { return x.number(args.is_none(i) ? otherwise : args.number(i)); };
  const S finite_above = select(eq(x, INFINITY), value(2, greatest(dtype)), x);
  const S finite = select(eq(x, -INFINITY), value(3, -greatest(dtype)), finite_above);
  return select(is_nan(x), value(1, 0), finite).id;
}

// Formulas for arguments where the library's functions overflow too early: exp(|x|) / 2 beyond the logarithm of the
// greatest number, and log(2|x|) where the square of |x| overflows.
S far_exp(S x) {
  const S half = exp(abs(x) * 0.5);
  return half * 0.5 * half;
}
S steep(S x) { return gt(abs(x), x.dtype() == DType::F64 ? 709 : 88); }
S sinh(S x) {
  const S magnitude = far_exp(x);
  return select(steep(x), select(lt(x, 0), -magnitude, magnitude), unary(Op::Sinh, x));
}
S cosh(S x) { return select(steep(x), far_exp(x), unary(Op::Cosh, x)); }

S huge(S x) { return gt(abs(x), x.dtype() == DType::F64 ? 1e150 : 1e18); }
S far_log(S x) { return log(abs(x)) + std::numbers::ln2; }
S asinh(S x) {
  const S magnitude = far_log(x);
  return select(huge(x), select(lt(x, 0), -magnitude, magnitude), unary(Op::Asinh, x));
}
S acosh(S x) { return select(gt(x, x.dtype() == DType::F64 ? 1e150 : 1e18), far_log(x), unary(Op::Acosh, x)); }

#define FLOAT_FUNCTION(name, function)                                                    \
  OpDef {                                                                                 \
    .schema = "aten::" name "(Tensor self) -> Tensor", .op_class = OpClass::Pointwise,    \
    .shape = shape_of<1, kReal, Out::Float>, .element = element1<function>, .heavy = true \
  }
#define FLOAT_UNARY(name, op, ...)                                                     \
  OpDef {                                                                              \
    .schema = "aten::" name "(Tensor self) -> Tensor", .op_class = OpClass::Pointwise, \
    .shape = shape_of<1, kReal, Out::Float>, .element = element1<apply1<Op::op>>,      \
    .heavy = true __VA_OPT__(, .epilogue =) __VA_ARGS__                                \
  }
#define ROUNDING(name, op)                                                                           \
  OpDef {                                                                                            \
    .schema = "aten::" name "(Tensor self) -> Tensor", .op_class = OpClass::Pointwise,               \
    .shape = shape_of<1, kNumeric, Out::Common>, .element = element1<rounded<Op::op>>, .steps = true \
  }

const OpDef kPointwiseUnaryOps[] = {
    FLOAT_UNARY("exp", Exp),
    FLOAT_UNARY("exp2", Exp2),
    FLOAT_UNARY("expm1", Expm1),
    FLOAT_UNARY("log", Log),
    FLOAT_UNARY("log2", Log2),
    FLOAT_UNARY("log10", Log10),
    FLOAT_UNARY("log1p", Log1p),
    FLOAT_UNARY("sqrt", Sqrt),
    FLOAT_UNARY("rsqrt", Rsqrt),
    FLOAT_UNARY("sin", Sin),
    FLOAT_UNARY("cos", Cos),
    FLOAT_UNARY("tan", Tan),
    FLOAT_UNARY("asin", Asin),
    FLOAT_UNARY("acos", Acos),
    FLOAT_UNARY("atan", Atan),
    FLOAT_FUNCTION("sinh", sinh),
    FLOAT_FUNCTION("cosh", cosh),
    FLOAT_UNARY("tanh", Tanh, [](const OpArgs&) -> std::string_view { return "tanh"; }),
    FLOAT_FUNCTION("asinh", asinh),
    FLOAT_FUNCTION("acosh", acosh),
    FLOAT_UNARY("atanh", Atanh),
    FLOAT_UNARY("erf", Erf),
    FLOAT_UNARY("erfc", Erfc),
    {.schema = "aten::lgamma(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kReal, Out::Float>,
     .element = element1<apply1<Op::Lgamma>>,
     .heavy = true,
     .traits = {.exact_doubles = true}},
    {.schema = "aten::sigmoid(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kReal, Out::Float>,
     .element = element1<sigmoid>,
     .heavy = true,
     .epilogue = [](const OpArgs&) -> std::string_view { return "sigmoid"; }},
    {.schema = "aten::sinc(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kReal, Out::Float>,
     .element = element1<sinc>,
     .heavy = true},
    {.schema = "aten::special_entr(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kReal, Out::Float>,
     .element = element1<entropy>,
     .heavy = true},
    {.schema = "aten::logit(Tensor self, float? eps=None) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kReal, Out::Float>,
     .element = element1_with<logit>,
     .heavy = true},
    {.schema = "aten::reciprocal(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kReal, Out::Float>,
     .element = element1<reciprocal>},
    {.schema = "aten::deg2rad(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kReal, Out::Float>,
     .element = element1<deg2rad>},
    {.schema = "aten::rad2deg(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kReal, Out::Float>,
     .element = element1<rad2deg>},
    ROUNDING("floor", Floor),
    ROUNDING("ceil", Ceil),
    ROUNDING("trunc", Trunc),
    ROUNDING("round", Round),
    {.schema = "aten::frac(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kFloat, Out::Common>,
     .element = element1<frac>,
     .steps = true},
    {.schema = "aten::neg(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kNumeric, Out::Common>,
     .element = element1<apply1<Op::Neg>>},
    {.schema = "aten::abs(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kNumeric, Out::Common>,
     .element = element1<apply1<Op::Abs>>},
    {.schema = "aten::sign(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kReal, Out::Common>,
     .element = element1<sign>,
     .steps = true},
    {.schema = "aten::sgn(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kReal, Out::Common>,
     .element = element1<sign>,
     .steps = true},
    {.schema = "aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kReal, Out::Common>,
     .element = nan_to_num,
     .steps = true},
};

}  // namespace

std::span<const OpDef> pointwise_unary_ops() { return kPointwiseUnaryOps; }

}  // namespace cresset::ops
