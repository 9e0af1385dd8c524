// Batch normalization: with running statistics (inference), or with the batch's own and nothing to update.
#include "ops/families.h"
#include "ops/normalize.h"
#include "ops/pointwise_types.h"
#include "ops/reduce_types.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using graph::ValueId;
using sym::ExprId;

// Where an overload keeps its arguments: input is 0, weight 1, bias 2.
struct Layout {
  size_t eps;
  int training = -1;     // -1: inference
  bool reserve = false;  // a fourth result, empty on the CPU
  bool running = true;   // running_mean 3, running_var 4
};

bool in_training(const OpArgs& args, Layout at) {
  return at.training >= 0 && args.flag(static_cast<size_t>(at.training));
}
bool has_running(const OpArgs& args, Layout at) { return at.running && !args.is_none(3) && !args.is_none(4); }

DType saved_dtype(const OpArgs& args, Layout at) {
  return at.running ? statistics_dtype(args, {1, 2, 3, 4}) : statistics_dtype(args, {1, 2});
}

bool is_per_channel(ShapeContext& shapes, const OpArgs& args, size_t i, ExprId channels) {
  return args.is_none(i) || (args.tensor(i).rank() == 1 && shapes.require_equal(args.tensor(i).sizes[0], channels));
}

template <Layout At>
Result<Types> batch_norm_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& input = args.tensor(0);
  const bool training = in_training(args, At), running = has_running(args, At);
  if (!(At.running ? parameters_fit(args, {1, 2, 3, 4}) : parameters_fit(args, {1, 2})))
    return unsupported_dtype(input.dtype, "batch norm");
  if (training == running) return shapes.unsupported("batch norm that updates running statistics, or has none");
  if (input.rank() < 2) return shapes.invalid("batch norm needs a batch and channels");
  for (size_t i = 1; i <= (At.running ? 4u : 2u); ++i)
    if (!is_per_channel(shapes, args, i, input.sizes[1]))
      return shapes.invalid("a parameter is not one number a channel");
  TensorType out = input;
  out.strides = shapes.strides_for(shapes.suggest_format(input), out.sizes);
  TensorType saved{saved_dtype(args, At), input.device, {}, {}};
  saved.sizes = {training ? input.sizes[1] : shapes.pool().constant(0)};
  saved.strides = shapes.contiguous_strides(saved.sizes);
  Types types{std::move(out), saved, saved};
  if (At.reserve) {
    saved.dtype = DType::U8;
    saved.sizes = {shapes.pool().constant(0)};
    types.push_back(saved);
  }
  return types;
}

// One number a channel, aligned with dimension 1 of `rank` dimensions.
std::vector<ExprId> channel_sizes(Compose& c, const TensorType& input) {
  std::vector<ExprId> sizes(input.rank() - 1, c.pool().constant(1));
  sizes[0] = input.sizes[1];
  return sizes;
}

// x * alpha + beta with alpha and beta from the statistics: two small vectors, then two operations an element.
ValueId with_running(Compose& c, const OpArgs& args, DType wide, double eps) {
  const std::vector<ExprId> sizes = channel_sizes(c, args.tensor(0));
  const ValueId mean = c.cast(args.value(3), wide), variance = c.cast(args.value(4), wide);
  ValueId alpha = c.unary("aten::rsqrt", c.add(variance, eps));
  if (!args.is_none(1)) alpha = c.mul(alpha, c.cast(args.value(1), wide));
  const ValueId shift = c.mul(mean, alpha);
  const ValueId beta = args.is_none(2) ? c.unary("aten::neg", shift) : c.sub(c.cast(args.value(2), wide), shift);
  const ValueId x = c.cast(args.value(0), wide);
  return c.add(c.mul(x, c.view(alpha, sizes)), c.view(beta, sizes));
}

std::vector<int64_t> all_but_channels(size_t rank) {
  std::vector<int64_t> dims{0};
  for (size_t d = 2; d < rank; ++d) dims.push_back(static_cast<int64_t>(d));
  return dims;
}

template <Layout At>
Result<Values> batch_norm_body(Compose& c, const OpArgs& args) {
  const TensorType input = args.tensor(0);
  const DType wide = compute_dtype(input.dtype), saved = saved_dtype(args, At);
  const double eps = args.number(At.eps);
  const TensorType empty{saved, input.device, {c.pool().constant(0)}, {c.pool().constant(1)}};
  Values out;
  if (in_training(args, At)) {
    const Normalized n = normalize_over(c, c.cast(args.value(0), wide), all_but_channels(input.rank()), eps);
    const std::vector<ExprId> sizes = channel_sizes(c, input), flat{input.sizes[1]};
    const ValueId y =
        scale_and_shift(c, n.value, parameter(c, args, 1, wide, &sizes), parameter(c, args, 2, wide, &sizes));
    out = {c.cast(y, input.dtype), c.cast(c.view(n.mean, flat), saved),
           c.cast(c.view(n.inverse_deviation, flat), saved)};
  } else {
    const ValueId y = with_running(c, args, wide, eps);
    out = {c.cast(y, input.dtype), c.full(empty, 0.0), c.full(empty, 0.0)};
  }
  if (At.reserve) {
    TensorType bytes = empty;
    bytes.dtype = DType::U8;
    out.push_back(c.full(bytes, c.integer(0)));
  }
  return out;
}

constexpr Layout kNative{.eps = 7, .training = 5};
constexpr Layout kInference{.eps = 6};
constexpr Layout kInferenceReserve{.eps = 6, .reserve = true};
constexpr Layout kNoStatistics{.eps = 5, .training = 3, .running = false};

#define BATCH_NORM(text, at)                                                                \
  OpDef {                                                                                   \
    .schema = "aten::" text, .op_class = OpClass::Composite, .shape = batch_norm_shape<at>, \
    .decompose = composed<batch_norm_shape<at>, batch_norm_body<at>>                        \
  }

const OpDef kOps[] = {
    BATCH_NORM("native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
               "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
               kNative),
    BATCH_NORM("_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
               "Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
               kInference),
    BATCH_NORM("_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
               "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
               kInferenceReserve),
    BATCH_NORM("_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float "
               "momentum, float eps) -> (Tensor, Tensor, Tensor)",
               kNoStatistics),
};

}  // namespace

std::span<const OpDef> normalize_batch_ops() { return kOps; }

}  // namespace cresset::ops
