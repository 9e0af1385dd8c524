// Batch normalization with running statistics (inference) or with batch statistics (training, which may update the
// running statistics), and its derivative. On the CPU, sums over a batch are f64, as in ATen: a channel has many
// elements, and an error in its statistics affects all of them. On GPUs, whose sums are trees, the sums have the
// compute dtype, as in ATen.
#include "ops/families.h"
#include "ops/normalize.h"
#include "ops/pointwise_types.h"
#include "ops/reduce_types.h"
#include "ops/strides.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using graph::ValueId;
using sym::ExprId;

// The argument positions of an overload: input is 0, weight 1, bias 2.
struct Layout {
  size_t eps;
  int training = -1;     // -1: inference
  bool reserve = false;  // a fourth result, empty on the CPU
  bool running = true;   // running_mean 3, running_var 4
  int momentum = -1;     // position of the momentum; if set, the last two results are the new running statistics
};

bool in_training(const OpArgs& args, Layout at) {
  return at.training >= 0 && args.flag(static_cast<size_t>(at.training));
}
constexpr bool updates(Layout at) { return at.momentum >= 0; }
bool has_running(const OpArgs& args, Layout at) { return at.running && !args.is_none(3) && !args.is_none(4); }

DType saved_dtype(const OpArgs& args, Layout at) {
  return at.running ? statistics_dtype(args, {1, 2, 3, 4}) : statistics_dtype(args, {1, 2});
}

// Without training, a GPU's kernel saves the running statistics. The CPU's kernel saves nothing.
bool saves_running(const TensorType& input) { return input.device.kind == DeviceKind::Cuda; }

bool is_per_channel(ShapeContext& shapes, const OpArgs& args, size_t i, ExprId channels) {
  return args.is_none(i) || (args.tensor(i).rank() == 1 && shapes.require_equal(args.tensor(i).sizes[0], channels));
}

template <Layout At>
Result<Types> batch_norm_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& input = args.tensor(0);
  const bool training = in_training(args, At), running = has_running(args, At);
  if (!(At.running ? parameters_fit(args, {1, 2, 3, 4}) : parameters_fit(args, {1, 2})))
    return unsupported_dtype(input.dtype, "batch norm");
  if (updates(At) ? !(training && running) : training == running)
    return shapes.unsupported("batch norm that updates running statistics, or has none");
  if (input.rank() < 2) return shapes.invalid("batch norm needs a batch and channels");
  for (size_t i = 1; i <= (At.running ? 4u : 2u); ++i)
    if (!is_per_channel(shapes, args, i, input.sizes[1]))
      return shapes.invalid("a parameter is not one number a channel");
  std::vector<int64_t> dims = all_but_channels(input.rank());
  dims.push_back(1);
  if (training && !require_elements(shapes, input, dims)) return shapes.invalid("no element to take statistics of");
  TensorType out = input;
  // ATen first asks whether the input is contiguous, in either format, regardless of the format suggested by size-1
  // dimensions.
  const graph::MemoryFormat format = shapes.is_contiguous(input) ? graph::MemoryFormat::Contiguous
                                     : is_channels_last_contiguous(shapes.env(), input)
                                         ? graph::MemoryFormat::ChannelsLast
                                         : shapes.suggest_format(input);
  out.strides = shapes.strides_for(format, out.sizes);
  TensorType saved{saved_dtype(args, At), input.device, {}, {}};
  saved.sizes = {training || saves_running(input) ? input.sizes[1] : shapes.pool().constant(0)};
  saved.strides = shapes.contiguous_strides(saved.sizes);
  Types types{std::move(out), saved, saved};
  if (At.reserve) {
    saved.dtype = DType::U8;
    saved.sizes = {shapes.pool().constant(0)};
    types.push_back(saved);
  }
  // The new running statistics have exactly the type of the old tensors, because the caller may return them.
  if (updates(At)) types.insert(types.end(), {args.tensor(3), args.tensor(4)});
  return types;
}

// A number for each channel, aligned with dimension 1 of `rank` dimensions.
std::vector<ExprId> channel_sizes(Compose& c, const TensorType& input) {
  std::vector<ExprId> sizes(input.rank() - 1, c.pool().constant(1));
  sizes[0] = input.sizes[1];
  return sizes;
}

// x * alpha + beta with alpha and beta from the statistics: two small vectors, then two operations for each element.
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

DType sum_dtype(const TensorType& input) {
  return input.device.kind == DeviceKind::Cuda ? compute_dtype(input.dtype) : DType::F64;
}

ValueId sum_up(Compose& c, ValueId v, const std::vector<int64_t>& dims) {
  return c.sum(c.cast(v, sum_dtype(c.type(v))), dims, true);
}

struct Statistics {  // of sum_dtype, with the folded dimensions kept
  ValueId mean, squares, inverse_deviation;
  ExprId count;
  ValueId value;  // normalized
};
Statistics statistics_of(Compose& c, ValueId x, double eps) {
  const DType wide = c.type(x).dtype;
  const std::vector<int64_t> dims = all_but_channels(c.type(x).rank());
  Statistics out;
  out.count = element_count(c.pool(), c.type(x), dims);
  out.mean = c.div(sum_up(c, x, dims), out.count);
  const ValueId centered = c.sub(x, c.cast(out.mean, wide));
  out.squares = sum_up(c, c.mul(centered, centered), dims);
  out.inverse_deviation = c.unary("aten::rsqrt", c.add(c.div(out.squares, out.count), eps));
  out.value = c.mul(centered, c.cast(out.inverse_deviation, wide));
  return out;
}

// running * (1 - momentum) + batch * momentum; the running variance is the sample variance.
void update(Compose& c, const OpArgs& args, Layout at, const Statistics& batch, Values& out) {
  const double momentum = args.number(static_cast<size_t>(at.momentum));
  const auto follow = [&](size_t running, ValueId value) {
    const TensorType type = args.tensor(running);
    const ValueId old = c.mul(c.cast(args.value(running), sum_dtype(args.tensor(0))), 1 - momentum);
    out.push_back(c.cast(c.add(old, c.mul(c.view(value, type.sizes), momentum)), type.dtype));
  };
  follow(3, batch.mean);
  follow(4, c.div(batch.squares, c.pool().sub(batch.count, c.pool().constant(1))));
}

template <Layout At>
Result<Values> batch_norm_body(Compose& c, const OpArgs& args) {
  const TensorType input = args.tensor(0);
  const DType wide = compute_dtype(input.dtype), saved = saved_dtype(args, At);
  const double eps = args.number(At.eps);
  const TensorType empty{saved, input.device, {c.pool().constant(0)}, {c.pool().constant(1)}};
  Values out;
  if (in_training(args, At)) {
    const Statistics n = statistics_of(c, c.cast(args.value(0), wide), eps);
    const std::vector<ExprId> sizes = channel_sizes(c, input), flat{input.sizes[1]};
    const ValueId y =
        scale_and_shift(c, n.value, parameter(c, args, 1, wide, &sizes), parameter(c, args, 2, wide, &sizes));
    out = {c.cast(y, input.dtype), c.cast(c.view(n.mean, flat), saved),
           c.cast(c.view(n.inverse_deviation, flat), saved)};
    if (updates(At)) update(c, args, At, n, out);
  } else {
    const ValueId y = with_running(c, args, wide, eps);
    out = {c.cast(y, input.dtype)};
    if (saves_running(input)) {
      out.push_back(c.call("aten::clone", {c.cast(args.value(3), saved), graph::MemoryFormat::Contiguous}));
      out.push_back(c.unary("aten::rsqrt", c.add(c.cast(args.value(4), saved), eps)));
    } else {
      out.insert(out.end(), 2, c.full(empty, 0.0));
    }
  }
  if (At.reserve) {
    TensorType bytes = empty;
    bytes.dtype = DType::U8;
    out.push_back(c.full(bytes, c.integer(0)));
  }
  return out;
}

// ---- the derivative: (grad, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps,
// output_mask)

// The dtype of the gradients of weight and bias.
DType gradient_dtype(const OpArgs& args) { return args.tensor(args.is_none(2) ? 1 : 2).dtype; }

Result<Types> backward_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& input = args.tensor(1);
  bool fits = is_float(input.dtype) && args.tensor(0).dtype == input.dtype;
  for (const size_t i : {2, 3, 4, 5, 6})
    fits = fits && (args.is_none(i) || args.tensor(i).dtype == input.dtype ||
                    args.tensor(i).dtype == compute_dtype(input.dtype));
  if (!fits || input.rank() < 2) return unsupported_dtype(input.dtype, "batch norm's derivative");
  const size_t mean = args.flag(7) ? 5 : 3;
  if (args.is_none(mean) || args.is_none(mean + 1)) return shapes.unsupported("no statistics");
  TensorType out = input;
  out.strides = shapes.strides_for(shapes.suggest_format(input), out.sizes);
  TensorType channel{gradient_dtype(args), input.device, {input.sizes[1]}, {shapes.pool().constant(1)}};
  return Types{std::move(out), channel, channel};
}

// With d = x - mean and r = 1 / deviation, over a channel's n elements:
//  dweight = r sum(grad d), dbias = sum(grad), dx = (grad - sum(grad) / n - d r^2 sum(grad d) / n) * weight r.
Result<Values> backward_body(Compose& c, const OpArgs& args) {
  const TensorType input = args.tensor(1);
  const DType wide = compute_dtype(input.dtype), exact = sum_dtype(input);
  const std::vector<ExprId> sizes = channel_sizes(c, input), flat{input.sizes[1]};
  const std::vector<int64_t> dims = all_but_channels(input.rank());
  const bool train = args.flag(7);
  const ValueId grad = c.cast(args.value(0), wide);
  const ValueId centered = c.sub(c.cast(args.value(1), wide), c.view(c.cast(args.value(train ? 5 : 3), wide), sizes));
  const ValueId statistic = c.view(c.cast(args.value(train ? 6 : 4), exact), sizes);
  const ValueId inverse = train ? statistic : c.unary("aten::rsqrt", c.add(statistic, args.number(8)));
  const ValueId sum = sum_up(c, grad, dims), product = sum_up(c, c.mul(grad, centered), dims);
  ValueId scale = inverse;
  if (!args.is_none(2)) scale = c.mul(scale, c.view(c.cast(args.value(2), exact), sizes));
  ValueId dx = grad;
  if (train) {
    const ExprId count = element_count(c.pool(), input, dims);
    const ValueId slope = c.div(c.mul(product, c.mul(inverse, inverse)), count);
    dx = c.sub(c.sub(dx, c.cast(c.div(sum, count), wide)), c.mul(centered, c.cast(slope, wide)));
  }
  const auto parameter_gradient = [&](ValueId v) { return c.cast(c.view(v, flat), gradient_dtype(args)); };
  return Values{c.cast(c.mul(dx, c.cast(scale, wide)), input.dtype), parameter_gradient(c.mul(product, inverse)),
                parameter_gradient(sum)};
}

constexpr Layout kNative{.eps = 7, .training = 5};
constexpr Layout kInference{.eps = 6};
constexpr Layout kInferenceReserve{.eps = 6, .reserve = true};
constexpr Layout kNoStatistics{.eps = 5, .training = 3, .running = false};
constexpr Layout kUpdating{.eps = 7, .training = 5, .momentum = 6};

#define BATCH_NORM(text, at, ...)                                                               \
  OpDef {                                                                                       \
    .schema = "aten::" text, .op_class = OpClass::Composite, .shape = batch_norm_shape<at>,     \
    .decompose = composed<batch_norm_shape<at>, batch_norm_body<at>> __VA_OPT__(, ) __VA_ARGS__ \
  }

const OpDef kNormalizeBatchOps[] = {
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
    BATCH_NORM("_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
               "Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor "
               "running_mean_out, Tensor running_var_out)",
               kUpdating, .traits = {.inference = Inference::RunsOnce}),
    {.schema = "aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, "
               "Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] "
               "output_mask) -> (Tensor, Tensor, Tensor)",
     .op_class = OpClass::Composite,
     .shape = backward_shape,
     .decompose = composed<backward_shape, backward_body>},
};

}  // namespace

std::span<const OpDef> normalize_batch_ops() { return kNormalizeBatchOps; }

}  // namespace cresset::ops
