// Activation functions. The parameters of a bf16/f16 activation are not rounded, because eager mode also computes them
// in f32.
#include <cmath>
#include <numbers>

#include "ops/families.h"
#include "ops/pointwise_types.h"

namespace cresset::ops {
namespace {

S relu(S x) { return maximum(x, x.number(0)); }
S silu(S x) { return x / (1.0 + exp(-x)); }
S mish(S x) { return x * tanh(log1p(exp(x))); }
S ramp6(S x) { return minimum(maximum(x + 3.0, x.number(0)), x.number(6)); }
S hardsigmoid(S x) { return ramp6(x) / 6.0; }
S hardswish(S x) { return x * ramp6(x) / 6.0; }

S gelu(S x, ElementContext&, const OpArgs& args) {
  if (args.text(1) == "tanh") {
    const double beta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
    const S inner = beta * (x + 0.044715 * (x * x * x));
    return 0.5 * x * (1.0 + tanh(inner));
  }
  return x * 0.5 * (1.0 + erf(x * (1 / std::numbers::sqrt2)));
}

Result<Types> gelu_shape(ShapeContext& shapes, const OpArgs& args) {
  if (args.text(1) != "none" && args.text(1) != "tanh") return shapes.invalid("approximate must be none or tanh");
  return shape_of<1, kFloat, Out::Common>(shapes, args);
}

S leaky_relu(S x, ElementContext& context, const OpArgs& args) {
  return select(gt(x, 0), x, x * number_arg(context, args, 1, x));
}

S elu(S x, ElementContext& context, const OpArgs& args) {
  const S scale = number_arg(context, args, 2, x);
  const S negative = expm1(x * number_arg(context, args, 3, x)) * (number_arg(context, args, 1, x) * scale);
  return select(lt(x, 0), negative, x * scale);
}

S celu(S x, ElementContext& context, const OpArgs& args) {
  const S alpha = number_arg(context, args, 1, x);
  return select(lt(x, 0), expm1(x * (1.0 / alpha)) * alpha, x);
}

S softplus(S x, ElementContext& context, const OpArgs& args) {
  const S beta = number_arg(context, args, 1, x);
  const S scaled = x * beta;
  return select(gt(scaled, number_arg(context, args, 2, x)), x, log1p(exp(scaled)) / beta);
}

S threshold(S x, ElementContext& context, const OpArgs& args) {
  return select(le(x, number_arg(context, args, 1, x)), number_arg(context, args, 2, x), x);
}

S hardshrink(S x, ElementContext& context, const OpArgs& args) {
  const S lambda = number_arg(context, args, 1, x);
  return select(both(ge(x, -lambda), le(x, lambda)), x.number(0), x);
}

S softshrink(S x, ElementContext& context, const OpArgs& args) {
  const S lambda = number_arg(context, args, 1, x);
  return select(gt(x, lambda), x - lambda, select(lt(x, -lambda), x + lambda, x * 0.0));
}

Result<Types> celu_shape(ShapeContext& shapes, const OpArgs& args) {
  if (constant_number(args.graph(), args[1]) == 0.0) return shapes.invalid("alpha must not be 0");
  return shape_of<1, kFloat, Out::Common>(shapes, args);
}

Result<Types> softshrink_shape(ShapeContext& shapes, const OpArgs& args) {
  const std::optional<double> lambda = constant_number(args.graph(), args[1]);
  if (!lambda || !(*lambda >= 0) || !std::isfinite(*lambda))
    return shapes.invalid("lambda must be a number that is not negative");
  return shape_of<1, kFloat, Out::Common>(shapes, args);
}

S prelu(S x, S weight) { return select(gt(x, 0), x, weight * x); }

// ATen allocates the result like self before its iterator sees the weight.
Result<Types> prelu_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(Types types, (same_dtype_shape_of<2, kFloat>(shapes, args)));
  if (types[0].sizes == args.tensor(0).sizes) types[0].strides = shapes.like_strides(args.tensor(0));
  return types;
}

// (log(sigmoid(x)), exp(-|x|)): the second is what the backward formula reads.
loop::ScalarId log_sigmoid(ElementContext& context, const OpArgs& args, size_t result, const Index& index) {
  const S x = operand(context, args, 0, index, context.result_type(0).dtype);
  const S decay = exp(-abs(x));
  if (result == 1) return decay.id;
  return (minimum(x, x.number(0)) - log1p(decay)).id;
}

Result<Types> log_sigmoid_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(Types types, (shape_of<1, kFloat, Out::Common>(shapes, args)));
  types[0].strides = shapes.contiguous_strides(types[0].sizes);
  types.push_back(types[0]);
  return types;
}

// glu halves a dimension: first half times the sigmoid of the second.
Result<Types> glu_shape(ShapeContext& shapes, const OpArgs& args) {
  const graph::TensorType& self = args.tensor(0);
  if (!is_float(self.dtype)) return unsupported_dtype(self.dtype, "glu");
  if (self.rank() == 0) return shapes.invalid("glu of a 0-dim tensor");
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(1), self.rank()));
  sym::ExprPool& pool = shapes.pool();
  graph::TensorType half = self;
  const sym::ExprId size = self.sizes[static_cast<size_t>(dim)];
  if (!shapes.require(pool.eq(pool.mod(size, pool.constant(2)), pool.constant(0))))
    return shapes.invalid("the halved dimension must be even");
  half.sizes[static_cast<size_t>(dim)] = pool.floor_div(size, pool.constant(2));
  half.strides = shapes.pointwise_strides(half.sizes, {&half, &half});
  return Types{std::move(half)};
}

loop::ScalarId glu(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const int64_t d = args.constant(1);
  const auto dim = static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(index.size()) : d);
  Index second = index;
  second[dim] = context.pool().add(index[dim], context.result_type(0).sizes[dim]);
  const S a{&context.scalars(), context.element(args.value(0), index)};
  return (a * sigmoid(a.with(context.element(args.value(0), second)))).id;
}

std::string_view gelu_epilogue(const OpArgs& args) { return args.text(1) == "tanh" ? "gelu_tanh" : "gelu"; }

const OpDef kActivationOps[] = {
    {.schema = "aten::relu(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kNumeric, Out::Common>,
     .element = element1<relu>,
     .epilogue = [](const OpArgs&) -> std::string_view { return "relu"; }},
    {.schema = "aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = gelu_shape,
     .element = element1_with<gelu>,
     .heavy = true,
     .epilogue = gelu_epilogue},
    {.schema = "aten::silu(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kFloat, Out::Common>,
     .element = element1<silu>,
     .heavy = true,
     .epilogue = [](const OpArgs&) -> std::string_view { return "silu"; }},
    {.schema = "aten::mish(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kFloat, Out::Common>,
     .element = element1<mish>,
     .heavy = true},
    {.schema = "aten::hardsigmoid(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kFloat, Out::Common>,
     .element = element1<hardsigmoid>,
     .epilogue = [](const OpArgs&) -> std::string_view { return "hardsigmoid"; }},
    {.schema = "aten::hardswish(Tensor self) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kFloat, Out::Common>,
     .element = element1<hardswish>,
     .epilogue = [](const OpArgs&) -> std::string_view { return "hardswish"; }},
    {.schema = "aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kFloat, Out::Common>,
     .element = element1_with<leaky_relu>},
    {.schema = "aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kFloat, Out::Common>,
     .element = element1_with<elu>,
     .heavy = true},
    {.schema = "aten::celu(Tensor self, Scalar alpha=1.) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = celu_shape,
     .element = element1_with<celu>,
     .heavy = true},
    {.schema = "aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kFloat, Out::Common>,
     .element = element1_with<softplus>,
     .heavy = true},
    {.schema = "aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kFloat, Out::Common>,
     .element = element1_with<threshold>,
     .steps = true},
    {.schema = "aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1, kFloat, Out::Common>,
     .element = element1_with<hardshrink>,
     .steps = true},
    {.schema = "aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = softshrink_shape,
     .element = element1_with<softshrink>},
    {.schema = "aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = prelu_shape,
     .element = element2<prelu>},
    {.schema = "aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
     .op_class = OpClass::Pointwise,
     .shape = log_sigmoid_shape,
     .element = log_sigmoid,
     .heavy = true},
    {.schema = "aten::glu(Tensor self, int dim=-1) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = glu_shape,
     .element = glu,
     .heavy = true,
     .traits = {.at_other_indices = true}},
};

}  // namespace

std::span<const OpDef> activation_ops() { return kActivationOps; }

}  // namespace cresset::ops
