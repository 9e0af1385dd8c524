// Derivative formulas with reductions, of softmax and of layer normalization, and formulas which embed a gradient in
// zeros. If a schema has an output mask, all results are computed here, and the bridge drops unwanted results.
#include "ops/compose.h"
#include "ops/families.h"
#include "ops/pointwise_types.h"
#include "ops/reduce_types.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using graph::ValueId;
using sym::ExprId;
using Dims = std::vector<int64_t>;

// ---- softmax: (grad, output, dim, input_dtype)

Result<Types> softmax_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &grad = args.tensor(0), &output = args.tensor(1);
  if (!is_float(grad.dtype) || grad.dtype != output.dtype || args.dtype(3) != grad.dtype)
    return unsupported_dtype(grad.dtype, "softmax's derivative");
  if (grad.rank() != output.rank()) return shapes.invalid("the gradient has another shape");
  for (size_t d = 0; d < grad.rank(); ++d)
    if (!shapes.require_equal(grad.sizes[d], output.sizes[d])) return shapes.invalid("the gradient has another shape");
  CRESSET_TRY([[maybe_unused]] const Dims dims, reduced_dims(shapes, args[2], output.rank()));
  return one(contiguous_like(shapes, grad, grad.sizes));
}

template <bool kLog>
Result<Values> softmax_body(Compose& c, const OpArgs& args) {
  const DType dtype = args.tensor(0).dtype, wide = compute_dtype(dtype);
  const Dims dims = reduced_dims(c.graph(), args[2], args.tensor(0).rank());
  const ValueId grad = c.cast(args.value(0), wide), output = c.cast(args.value(1), wide);
  if (kLog) return Values{c.cast(c.sub(grad, c.mul(c.unary("aten::exp", output), c.sum(grad, dims, true))), dtype)};
  const ValueId weighted = c.mul(grad, output);
  return Values{c.cast(c.sub(weighted, c.mul(output, c.sum(weighted, dims, true))), dtype)};
}

// ---- layer normalization: with normalized n = (x - mean) / deviation and g = grad * weight, over the folded elements,
// dx = (g - mean(g) - n * mean(g * n)) / deviation, dweight = sum(grad * n), dbias = sum(grad).

ValueId through_statistics(Compose& c, ValueId g, ValueId n, ValueId inverse_deviation, const Dims& dims) {
  const ExprId count = element_count(c.pool(), c.type(n), dims);
  const ValueId mean_g = c.div(c.sum(g, dims, true), count);
  const ValueId mean_gn = c.div(c.sum(c.mul(g, n), dims, true), count);
  return c.mul(c.sub(c.sub(g, mean_g), c.mul(n, mean_gn)), inverse_deviation);
}

Dims range(size_t from, size_t to) {
  Dims dims;
  for (size_t d = from; d < to; ++d) dims.push_back(static_cast<int64_t>(d));
  return dims;
}

// (grad, input, normalized_shape, mean, rstd, weight, bias, output_mask)
Result<Types> layer_norm_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& input = args.tensor(1);
  const std::vector<ExprId>& normalized = args.integers(2);
  const bool same = is_float(input.dtype) && args.tensor(0).dtype == input.dtype &&
                    args.tensor(3).dtype == compute_dtype(input.dtype) &&
                    (args.is_none(5) || args.tensor(5).dtype == input.dtype);
  if (!same) return unsupported_dtype(input.dtype, "layer norm's derivative");
  if (args.tensor(3).rank() != input.rank()) return shapes.unsupported("statistics of another rank");
  TensorType parameter = contiguous_like(shapes, input, normalized);
  return Types{contiguous_like(shapes, input, input.sizes), parameter, parameter};
}

Result<Values> layer_norm_body(Compose& c, const OpArgs& args) {
  const TensorType input = args.tensor(1);
  const DType wide = compute_dtype(input.dtype);
  const size_t kept = input.rank() - args.integers(2).size();
  const ValueId grad = c.cast(args.value(0), wide), inverse = c.cast(args.value(4), wide);
  const ValueId n = c.mul(c.sub(c.cast(args.value(1), wide), c.cast(args.value(3), wide)), inverse);
  const ValueId g = args.is_none(5) ? grad : c.mul(grad, c.cast(args.value(5), wide));
  const ValueId dx = through_statistics(c, g, n, inverse, range(kept, input.rank()));
  const Dims rows = range(0, kept);
  const auto fold = [&](ValueId v) { return c.cast(c.sum(v, rows, false), input.dtype); };
  return Values{c.cast(dx, input.dtype), fold(c.mul(grad, n)), fold(grad)};
}

// ---- a gradient embedded in zeros: (grad, input_sizes, ...)

Result<Types> among_zeros_shape(ShapeContext& shapes, const OpArgs& args) {
  return one(contiguous_like(shapes, args.tensor(0), args.integers(1)));
}

ValueId zeros_of(Compose& c, const OpArgs& args) {
  TensorType type = args.tensor(0);
  type.sizes = args.integers(1);
  return c.full(type, is_float(type.dtype) ? graph::Arg(0.0) : c.integer(0));
}

Result<Values> slice_body(Compose& c, const OpArgs& args) {
  return Values{c.call("aten::slice_scatter", {zeros_of(c, args), args.value(0), args[2], args[3], args[4], args[5]})};
}
Result<Values> select_body(Compose& c, const OpArgs& args) {
  return Values{c.call("aten::select_scatter", {zeros_of(c, args), args.value(0), args[2], args[3]})};
}

// (grad, indices, num_weights, padding_idx, scale_grad_by_freq)
Result<Types> embedding_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& grad = args.tensor(0);
  if (!is_float(grad.dtype) || grad.rank() == 0) return unsupported_dtype(grad.dtype, "an embedding's derivative");
  return one(contiguous_like(shapes, grad, {args.integer(2), grad.sizes.back()}));
}

template <Result<Types> (*Shape)(ShapeContext&, const OpArgs&), Result<Values> (*Body)(Compose&, const OpArgs&)>
constexpr OpDef row(std::string_view schema) {
  return {.schema = schema, .op_class = OpClass::Composite, .shape = Shape, .decompose = composed<Shape, Body>};
}

const OpDef kGradientCompositeOps[] = {
    row<softmax_shape, softmax_body<false>>(
        "aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor"),
    row<softmax_shape, softmax_body<true>>(
        "aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> "
        "Tensor"),
    row<layer_norm_shape, layer_norm_body>(
        "aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, "
        "Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)"),
    row<among_zeros_shape, slice_body>(
        "aten::slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt "
        "step) -> Tensor"),
    row<among_zeros_shape, select_body>(
        "aten::select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor"),
    {.schema = "aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt "
               "padding_idx, bool scale_grad_by_freq) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = embedding_shape},
};

}  // namespace

std::span<const OpDef> gradient_composite_ops() { return kGradientCompositeOps; }

}  // namespace cresset::ops
