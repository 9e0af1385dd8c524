// Powers. Small constant exponents become multiplications, as in eager mode.
#include <cmath>

#include "ops/families.h"
#include "ops/pointwise_types.h"

namespace cresset::ops {
namespace {

using loop::Op;

S power(S a, S b) { return binary(Op::Pow, a, b); }

// Exponentiation by squaring; integers wrap like repeated multiplication.
S whole_power(S x, int64_t exponent) {
  S out = x.number(1), square = x;
  for (bool started = false; exponent > 0; exponent >>= 1) {
    if (exponent & 1) {
      out = started ? out * square : square;
      started = true;
    }
    if (exponent > 1) square = square * square;
  }
  return out;
}

std::optional<S> special_power(S x, double exponent) {
  if (exponent == 0.0 || exponent == 1.0 || exponent == 2.0 || exponent == 3.0)
    return whole_power(x, static_cast<int64_t>(exponent));
  if (exponent == 0.5) return sqrt(x);
  if (exponent == -0.5) return unary(Op::Rsqrt, x);
  if (exponent == -1.0) return 1.0 / x;
  if (exponent == -2.0) return 1.0 / (x * x);
  return std::nullopt;
}

// Guards whether a symbolic exponent is a special exponent. Special exponents need no call of pow and have separate
// kernels.
void tell_special_exponents(ShapeContext& shapes, const graph::Arg& exponent) {
  const auto* e = std::get_if<sym::ExprId>(&exponent);
  if (e == nullptr || constant_number(shapes.graph(), exponent)) return;
  for (const int64_t special : {2, 3, -1, -2, 1, 0})
    if (shapes.decided(shapes.pool().eq(*e, shapes.pool().constant(special))).value_or(false)) return;
}

Result<Types> tensor_scalar_shape(ShapeContext& shapes, const OpArgs& args) {
  tell_special_exponents(shapes, args[1]);
  CRESSET_TRY(Types types, (shape_of<2, kNumeric, Out::Common>(shapes, args)));
  if (args.is_tensor(0) && !args.is_tensor(1)) {  // the exponent is not an operand of ATen's iterator
    graph::TensorType self = args.tensor(0);
    if (self.dtype != types[0].dtype) self.strides = shapes.like_strides(self);
    types[0].strides = shapes.pointwise_strides(self.sizes, {&self});
  }
  if (!is_integral(types[0].dtype)) return types;
  const std::optional<double> exponent = constant_number(args.graph(), args[1]);
  if (!exponent || *exponent < 0) return shapes.unsupported("an integer power whose exponent is not a known natural");
  return types;
}

loop::ScalarId tensor_scalar(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType dtype = context.result_type(0).dtype;
  const S x = operand(context, args, 0, index, dtype);
  const std::optional<double> exponent = constant_number(args.graph(), args[1]);
  if (is_integral(dtype)) return whole_power(x, static_cast<int64_t>(*exponent)).id;
  if (exponent)
    if (const std::optional<S> special = special_power(x, *exponent)) return special->id;
  return power(x, number_arg(context, args, 1, x)).id;
}

Result<Types> tensor_tensor_shape(ShapeContext& shapes, const OpArgs& args) {
  if (!args.is_tensor(1)) return tensor_scalar_shape(shapes, args);
  CRESSET_TRY(Types types, (shape_of<2, kNumeric, Out::Common>(shapes, args)));
  if (is_integral(types[0].dtype)) return shapes.unsupported("an integer power by a tensor");
  return types;
}

loop::ScalarId tensor_tensor(ElementContext& context, const OpArgs& args, size_t result, const Index& index) {
  if (!args.is_tensor(1)) return tensor_scalar(context, args, result, index);
  return element2<power>(context, args, result, index);
}

// The result is row-major, regardless of the exponents' strides.
Result<Types> scalar_tensor_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(Types types, tensor_tensor_shape(shapes, args));
  types[0].strides = shapes.contiguous_strides(types[0].sizes);
  return types;
}

const OpDef kPointwisePowerOps[] = {
    {.schema = "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = tensor_scalar_shape,
     .element = tensor_scalar},
    {.schema = "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = tensor_tensor_shape,
     .element = tensor_tensor,
     .heavy = true},
    {.schema = "aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = scalar_tensor_shape,
     .element = tensor_tensor,
     .heavy = true,
     .traits = {.inference = Inference::RunsOften}},
};

}  // namespace

std::span<const OpDef> pointwise_power_ops() { return kPointwisePowerOps; }

}  // namespace cresset::ops
