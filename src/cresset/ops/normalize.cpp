// Normalizations over trailing dimensions and over groups of channels. Statistics are two-pass and stay in the compute
// dtype; results are rounded once.
#include "ops/normalize.h"

#include "ops/compose.h"
#include "ops/families.h"
#include "ops/pointwise_types.h"
#include "ops/reduce_types.h"

namespace cresset::ops {

using graph::TensorType;
using graph::ValueId;
using sym::ExprId;

Normalized normalize_over(Compose& c, ValueId x, const std::vector<int64_t>& dims, double eps) {
  const ExprId count = element_count(c.pool(), c.type(x), dims);
  Normalized out;
  out.mean = c.div(c.sum(x, dims, true), count);
  const ValueId centered = c.sub(x, out.mean);
  const ValueId variance = c.div(c.sum(c.mul(centered, centered), dims, true), count);
  out.inverse_deviation = c.unary("aten::rsqrt", c.add(variance, eps));
  out.value = c.mul(centered, out.inverse_deviation);
  return out;
}

ValueId scale_and_shift(Compose& c, ValueId x, const std::optional<ValueId>& weight,
                        const std::optional<ValueId>& bias) {
  if (weight) x = c.mul(x, *weight);
  if (bias) x = c.add(x, *bias);
  return x;
}

std::optional<ValueId> parameter(Compose& c, const OpArgs& args, size_t i, DType dtype,
                                 const std::vector<ExprId>* sizes) {
  if (args.is_none(i)) return std::nullopt;
  const ValueId wide = c.cast(args.value(i), dtype);
  return sizes == nullptr ? wide : c.view(wide, *sizes);
}

DType parameter_dtype(const OpArgs& args, std::initializer_list<size_t> parameters) {
  const DType input = args.tensor(0).dtype;
  for (const size_t i : parameters)
    if (!args.is_none(i) && args.tensor(i).dtype != input) return DType::F32;
  return input;
}

DType statistics_dtype(const OpArgs& args, std::initializer_list<size_t> parameters) {
  const TensorType& input = args.tensor(0);
  return input.device.kind == DeviceKind::Cuda ? compute_dtype(input.dtype) : parameter_dtype(args, parameters);
}

// Parameters must have the input's float dtype, or f32 beside a bf16/f16 input.
bool parameters_fit(const OpArgs& args, std::initializer_list<size_t> parameters) {
  const DType input = args.tensor(0).dtype;
  if (!is_float(input)) return false;
  for (const size_t i : parameters) {
    if (args.is_none(i)) continue;
    const DType dtype = args.tensor(i).dtype;
    if (dtype != input && !(dtype == DType::F32 && compute_dtype(input) == DType::F32)) return false;
  }
  return true;
}

namespace {

std::vector<int64_t> trailing_dims(size_t rank, size_t count) {
  std::vector<int64_t> dims;
  for (size_t d = rank - count; d < rank; ++d) dims.push_back(static_cast<int64_t>(d));
  return dims;
}

// ---- layer norm: (input, normalized_shape, weight, bias, eps) -> (out, mean, rstd)

Result<Types> layer_norm_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& input = args.tensor(0);
  const std::vector<ExprId>& normalized = args.integers(1);
  if (!parameters_fit(args, {2, 3})) return unsupported_dtype(input.dtype, "layer norm");
  if (normalized.empty() || normalized.size() > input.rank()) return shapes.invalid("normalized_shape does not fit");
  const size_t kept = input.rank() - normalized.size();
  for (size_t i = 0; i < normalized.size(); ++i)
    if (!shapes.require_equal(normalized[i], input.sizes[kept + i])) return shapes.invalid("normalized_shape differs");
  for (const size_t p : {2, 3}) {
    if (args.is_none(p)) continue;
    if (args.tensor(p).rank() != normalized.size()) return shapes.invalid("a parameter is not of normalized_shape");
    for (size_t i = 0; i < normalized.size(); ++i)
      if (!shapes.require_equal(normalized[i], args.tensor(p).sizes[i]))
        return shapes.invalid("a parameter is not of normalized_shape");
  }
  TensorType out = input;
  out.strides = shapes.contiguous_strides(out.sizes);
  const std::vector<int64_t> dims = trailing_dims(input.rank(), normalized.size());
  const TensorType statistics = reduced_type(shapes, input, dims, true, statistics_dtype(args, {2, 3}));
  return Types{std::move(out), statistics, statistics};
}

Result<Values> layer_norm_body(Compose& c, const OpArgs& args) {
  const DType dtype = args.tensor(0).dtype, wide = compute_dtype(dtype);
  const DType statistics = statistics_dtype(args, {2, 3});
  const std::vector<int64_t> dims = trailing_dims(args.tensor(0).rank(), args.integers(1).size());
  const Normalized n = normalize_over(c, c.cast(args.value(0), wide), dims, args.number(4));
  const ValueId out =
      scale_and_shift(c, n.value, parameter(c, args, 2, wide, nullptr), parameter(c, args, 3, wide, nullptr));
  return Values{c.cast(out, dtype), c.cast(n.mean, statistics), c.cast(n.inverse_deviation, statistics)};
}

// ---- group norm: (input, weight, bias, N, C, HxW, group, eps) -> (out, mean, rstd)

// The result for images whose channels are in groups: in the input's memory format, which must be dense.
Result<TensorType> in_groups(ShapeContext& shapes, const TensorType& input, ExprId group) {
  sym::ExprPool& pool = shapes.pool();
  if (!shapes.require_equal(pool.mod(input.sizes[1], group), pool.constant(0)))
    return shapes.invalid("the channels do not divide into the groups");
  TensorType out = input;
  out.strides = shapes.strides_for(shapes.suggest_format(input), out.sizes);
  for (size_t d = 0; d < out.rank(); ++d)
    if (shapes.env().hint(out.sizes[d]) != 1 &&
        shapes.env().hint(out.strides[d]) != shapes.env().hint(input.strides[d]))
      return shapes.unsupported("an input that is not contiguous");
  return out;
}

Result<Types> group_norm_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& input = args.tensor(0);
  if (!parameters_fit(args, {1, 2})) return unsupported_dtype(input.dtype, "group norm");
  if (input.rank() < 2) return shapes.invalid("group norm needs a batch and channels");
  sym::ExprPool& pool = shapes.pool();
  const ExprId group = pool.constant(shapes.constant(args.integer(6)));
  for (const size_t p : {1, 2})
    if (!args.is_none(p) &&
        !(args.tensor(p).rank() == 1 && shapes.require_equal(args.tensor(p).sizes[0], input.sizes[1])))
      return shapes.invalid("a parameter is not one number a channel");
  CRESSET_TRY(TensorType out, in_groups(shapes, input, group));
  TensorType statistics{parameter_dtype(args, {1, 2}), input.device, {input.sizes[0], group}, {}};
  statistics.strides = shapes.contiguous_strides(statistics.sizes);
  return Types{std::move(out), statistics, statistics};
}

// Channels are split into [group, channels of the group], which is a view for any strides.
Result<Values> group_norm_body(Compose& c, const OpArgs& args) {
  const TensorType input = args.tensor(0);
  const DType wide = compute_dtype(input.dtype), statistics = parameter_dtype(args, {1, 2});
  const ExprId group = args.integer(6), per_group = c.pool().floor_div(input.sizes[1], group);
  std::vector<ExprId> split{input.sizes[0], group, per_group}, channel{group, per_group};
  for (size_t d = 2; d < input.rank(); ++d) {
    split.push_back(input.sizes[d]);
    channel.push_back(c.pool().constant(1));
  }
  const ValueId x = c.view(c.cast(args.value(0), wide), split);
  const Normalized n = normalize_over(c, x, trailing_dims(split.size(), split.size() - 2), args.number(7));
  const ValueId out =
      scale_and_shift(c, n.value, parameter(c, args, 1, wide, &channel), parameter(c, args, 2, wide, &channel));
  const std::vector<ExprId> per_group_sizes{input.sizes[0], group};
  const auto statistic = [&](ValueId v) { return c.cast(c.view(v, per_group_sizes), statistics); };
  return Values{c.cast(c.view(out, input.sizes), input.dtype), statistic(n.mean), statistic(n.inverse_deviation)};
}

// ---- its derivative: (grad, input, mean, rstd, weight, N, C, HxW, group, output_mask) -> (dx, dweight, dbias)

Result<Types> group_norm_backward_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &grad = args.tensor(0), &input = args.tensor(1);
  bool fits = is_float(input.dtype) && grad.dtype == input.dtype;
  for (const size_t i : {2, 3, 4})
    fits = fits && (args.is_none(i) || args.tensor(i).dtype == input.dtype ||
                    args.tensor(i).dtype == compute_dtype(input.dtype));
  if (!fits || input.rank() < 2) return unsupported_dtype(input.dtype, "group norm's derivative");
  for (size_t d = 0; d < input.rank(); ++d)
    if (grad.rank() != input.rank() || !shapes.require_equal(grad.sizes[d], input.sizes[d]))
      return shapes.invalid("the gradient has another shape");
  CRESSET_TRY(TensorType out, in_groups(shapes, input, args.integer(8)));
  const DType parameters = args.is_none(4) ? input.dtype : args.tensor(4).dtype;
  const TensorType channel{parameters, input.device, {input.sizes[1]}, {shapes.pool().constant(1)}};
  return Types{std::move(out), channel, channel};
}

// With d = x - mean, r = 1 / deviation and w the weight, over the n elements of a group:
//  dweight = sum(grad d) r and dbias = sum(grad) over images and positions,
//  dx = (grad w - sum(grad w) / n - d r^2 sum(grad w d) / n) r.
// Sums over positions come first: all others are sums of few numbers.
Result<Values> group_norm_backward_body(Compose& c, const OpArgs& args) {
  const TensorType input = args.tensor(1);
  const DType wide = compute_dtype(input.dtype), parameters = args.is_none(4) ? input.dtype : args.tensor(4).dtype;
  const ExprId one = c.pool().constant(1), group = args.integer(8),
               per_group = c.pool().floor_div(input.sizes[1], group);
  std::vector<ExprId> split{input.sizes[0], group, per_group}, per_image{input.sizes[0], group, one},
      channel{group, per_group};
  for (size_t d = 2; d < input.rank(); ++d) {
    split.push_back(input.sizes[d]);
    per_image.push_back(one);
    channel.push_back(one);
  }
  const std::vector<int64_t> positions = trailing_dims(split.size(), split.size() - 3);
  const auto statistic = [&](size_t i) { return c.view(c.cast(args.value(i), wide), per_image); };
  const ValueId grad = c.view(c.cast(args.value(0), wide), split), inverse = statistic(3);
  const ValueId centered = c.sub(c.view(c.cast(args.value(1), wide), split), statistic(2));
  const ValueId sum = c.sum(grad, positions, true), product = c.sum(c.mul(grad, centered), positions, true);
  const std::optional<ValueId> weight = parameter(c, args, 4, wide, &channel);
  const auto of_group = [&](ValueId v) { return c.sum(weight ? c.mul(v, *weight) : v, {2}, true); };
  const ExprId count = element_count(c.pool(), c.type(grad), trailing_dims(split.size(), split.size() - 2));
  const ValueId slope = c.div(c.mul(of_group(product), c.mul(inverse, inverse)), count);
  const ValueId scaled = weight ? c.mul(grad, *weight) : grad;
  const ValueId dx = c.mul(c.sub(c.sub(scaled, c.div(of_group(sum), count)), c.mul(centered, slope)), inverse);
  const auto of_channel = [&](ValueId v) { return c.cast(c.view(c.sum(v, {0}, false), {input.sizes[1]}), parameters); };
  return Values{c.cast(c.view(dx, input.sizes), input.dtype), of_channel(c.mul(product, inverse)), of_channel(sum)};
}

const OpDef kNormalizeOps[] = {
    {.schema = "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float "
               "eps) -> (Tensor, Tensor, Tensor)",
     .op_class = OpClass::Composite,
     .shape = layer_norm_shape,
     .decompose = composed<layer_norm_shape, layer_norm_body>},
    {.schema = "aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, "
               "int group, float eps) -> (Tensor, Tensor, Tensor)",
     .op_class = OpClass::Composite,
     .shape = group_norm_shape,
     .decompose = composed<group_norm_shape, group_norm_body>},
    {.schema = "aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? "
               "weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
     .op_class = OpClass::Composite,
     .shape = group_norm_backward_shape,
     .decompose = composed<group_norm_backward_shape, group_norm_backward_body>},
};

}  // namespace

std::span<const OpDef> normalize_ops() { return kNormalizeOps; }

}  // namespace cresset::ops
