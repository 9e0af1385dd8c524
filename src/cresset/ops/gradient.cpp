// The operators in which autograd's derivative formulas end, beside ordinary arithmetic. As in ATen, they compute bf16
// and f16 in f32.
#include <cmath>
#include <numbers>

#include "ops/families.h"
#include "ops/pointwise_types.h"

namespace cresset::ops {
namespace {

// (grad, x): the first two operands, independent of the order in the schema.
template <S (*F)(S, S, ElementContext&, const OpArgs&), size_t Grad = 0, size_t X = 1>
loop::ScalarId derivative(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType dtype = context.result_type(0).dtype;
  const S grad = operand(context, args, Grad, index, dtype);
  return F(grad, operand(context, args, X, index, dtype), context, args).id;
}

template <size_t... Operands>
Result<Types> shape_over(ShapeContext& shapes, const OpArgs& args) {
  static constexpr size_t kThese[] = {Operands...};
  return same_dtype_shape(shapes, args, kThese, kFloat);
}

S threshold(S grad, S x, ElementContext& context, const OpArgs& args) {
  return select(le(x, number_arg(context, args, 2, x)), x.number(0), grad);
}
S tanh_of(S grad, S y, ElementContext&, const OpArgs&) { return grad * (1.0 - y * y); }
S sigmoid_of(S grad, S y, ElementContext&, const OpArgs&) { return grad * (1.0 - y) * y; }
S silu(S grad, S x, ElementContext&, const OpArgs&) {
  const S s = sigmoid(x);
  return grad * s * (1.0 + x * (1.0 - s));
}
S mish(S grad, S x, ElementContext&, const OpArgs&) {
  const S t = tanh(log1p(exp(x)));
  return grad * (t + x * sigmoid(x) * (1.0 - t * t));
}

S gelu(S grad, S x, ElementContext&, const OpArgs& args) {
  if (args.text(2) == "tanh") {
    const double beta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kappa = 0.044715;
    const S t = tanh(beta * (x + kappa * (x * x * x)));
    const S slope = beta * (1.0 + 3 * kappa * (x * x));
    return grad * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope);
  }
  const double beta = 0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // density of the normal distribution
  const S cdf = 0.5 * (1.0 + erf(x * (1 / std::numbers::sqrt2)));
  return grad * (cdf + x * (beta * exp(-0.5 * (x * x))));
}

S hardtanh(S grad, S x, ElementContext& context, const OpArgs& args) {
  const S outside = either(le(x, number_arg(context, args, 2, x)), ge(x, number_arg(context, args, 3, x)));
  return select(outside, x.number(0), grad);
}
S hardsigmoid(S grad, S x, ElementContext&, const OpArgs&) {
  return select(both(gt(x, -3), lt(x, 3)), grad / 6.0, x.number(0));
}
S hardswish(S grad, S x, ElementContext&, const OpArgs&) {
  return select(le(x, -3), x.number(0), select(lt(x, 3), grad * (x / 3.0 + 0.5), grad));
}
S leaky_relu(S grad, S x, ElementContext& context, const OpArgs& args) {
  return select(gt(x, 0), grad, grad * number_arg(context, args, 2, x));
}
// (grad, alpha, scale, input_scale, is_result, self_or_result)
S elu(S grad, S x, ElementContext& context, const OpArgs& args) {
  const S alpha = number_arg(context, args, 1, x), scale = number_arg(context, args, 2, x);
  const S input_scale = number_arg(context, args, 3, x);
  const S negative = args.flag(4) ? grad * input_scale * (x + alpha * scale)
                                  : grad * input_scale * (alpha * scale) * exp(x * input_scale);
  return select(le(x, 0), negative, grad * scale);
}
S softplus(S grad, S x, ElementContext& context, const OpArgs& args) {
  const S scaled = x * number_arg(context, args, 2, x), z = exp(scaled);
  return select(gt(scaled, number_arg(context, args, 3, x)), grad, grad * z / (z + 1.0));
}

// (grad, mask, scale)
loop::ScalarId dropout(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType dtype = context.result_type(0).dtype;
  const S grad = operand(context, args, 0, index, dtype);
  const S mask = operand(context, args, 1, index, dtype);
  return (grad * mask * number_arg(context, args, 2, grad)).id;
}
Result<Types> dropout_shape(ShapeContext& shapes, const OpArgs& args) {
  static constexpr size_t kOperands[] = {0, 1};
  const DType dtype = args.tensor(0).dtype;
  if (!is_float(dtype) || args.tensor(1).dtype != DType::Bool) return unsupported_dtype(dtype, "dropout");
  return pointwise_result(shapes, args, kOperands, dtype, dtype);
}

Result<Types> gelu_shape(ShapeContext& shapes, const OpArgs& args) {
  if (args.text(2) != "none" && args.text(2) != "tanh") return shapes.invalid("approximate must be none or tanh");
  return shape_over<0, 1>(shapes, args);
}

constexpr OpDef row(std::string_view schema, decltype(OpDef::element) element, bool heavy = false) {
  return {
      .schema = schema, .op_class = OpClass::Pointwise, .shape = shape_over<0, 1>, .element = element, .heavy = heavy};
}

const OpDef kGradientOps[] = {
    row("aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor", derivative<threshold>),
    row("aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor", derivative<tanh_of>),
    row("aten::sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", derivative<sigmoid_of>),
    row("aten::silu_backward(Tensor grad_output, Tensor self) -> Tensor", derivative<silu>, true),
    row("aten::mish_backward(Tensor grad_output, Tensor self) -> Tensor", derivative<mish>, true),
    {.schema = "aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\") -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = gelu_shape,
     .element = derivative<gelu>,
     .heavy = true},
    row("aten::hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
        derivative<hardtanh>),
    row("aten::hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", derivative<hardsigmoid>),
    row("aten::hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", derivative<hardswish>),
    row("aten::leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> "
        "Tensor",
        derivative<leaky_relu>),
    {.schema = "aten::elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, "
               "Tensor self_or_result) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_over<0, 5>,
     .element = derivative<elu, 0, 5>,
     .heavy = true},
    row("aten::softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
        derivative<softplus>, true),
    {.schema = "aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = dropout_shape,
     .element = dropout},
};

}  // namespace

std::span<const OpDef> gradient_ops() { return kGradientOps; }

}  // namespace cresset::ops
