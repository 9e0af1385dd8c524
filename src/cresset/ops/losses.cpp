// Elementwise losses: a pointwise function of input and target, then its mean, its sum, or no reduction. They compute
// in the compute dtype and round once, at the end.
#include "ops/compose.h"
#include "ops/families.h"
#include "ops/pointwise_types.h"
#include "ops/reduce_types.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using graph::ValueId;

enum Reduction : int64_t { kNone, kMean, kSum };

Reduction reduction_of(const OpArgs& args, size_t position) {
  return static_cast<Reduction>(args.graph().pool().const_value(args.integer(position)));
}

Result<Types> reduced_loss(ShapeContext& shapes, const TensorType& each, Reduction reduction) {
  return one(reduction == kNone ? each : contiguous_like(shapes, each, {}));
}

// The mean or sum of `each`, in the loss's dtype.
ValueId reduced(Compose& c, ValueId each, Reduction reduction, DType dtype) {
  if (reduction == kMean) return c.call("aten::mean", {c.cast(each, dtype), graph::None{}});
  if (reduction == kSum) return c.call("aten::sum", {c.cast(each, dtype), graph::None{}});
  return c.cast(each, dtype);
}

// ---- losses of a difference: (self, target, reduction[, threshold])

Result<Types> difference_shape(ShapeContext& shapes, const OpArgs& args) {
  if (args.tensor(0).dtype != args.tensor(1).dtype) return shapes.unsupported("a loss of two dtypes");
  CRESSET_TRY(const Types each, (shape_of<2, kFloat, Out::Common>(shapes, args)));
  return reduced_loss(shapes, each[0], reduction_of(args, 2));
}

// The threshold must be positive: eager mode rejects other thresholds or computes another loss.
Result<Types> threshold_shape(ShapeContext& shapes, const OpArgs& args) {
  const std::optional<double> threshold = constant_number(args.graph(), args[3]);
  if (!threshold || !(*threshold > 0)) return shapes.unsupported("a threshold that is not known to be positive");
  return difference_shape(shapes, args);
}

ValueId difference(Compose& c, const OpArgs& args) {
  const DType dtype = compute_dtype(args.tensor(0).dtype);
  return c.sub(c.cast(args.value(0), dtype), c.cast(args.value(1), dtype));
}

Result<Values> squared_body(Compose& c, const OpArgs& args) {
  const DType dtype = args.tensor(0).dtype;
  const ValueId d = difference(c, args);
  return Values{reduced(c, c.mul(d, d), reduction_of(args, 2), dtype)};
}

// The square up to the threshold, and its tangent beyond it. The smooth loss is divided by the threshold.
template <bool Smooth>
Result<Values> threshold_body(Compose& c, const OpArgs& args) {
  const DType dtype = args.tensor(0).dtype;
  const double threshold = constant_number(args.graph(), args[3]).value();
  const ValueId size = c.unary("aten::abs", difference(c, args));
  const ValueId near = c.mul(c.mul(size, size), 0.5), far = c.sub(size, 0.5 * threshold);
  const ValueId is_near = c.call(Smooth ? "aten::lt.Scalar" : "aten::le.Scalar", {size, threshold});
  const ValueId each =
      Smooth ? c.where(is_near, c.div(near, threshold), far) : c.where(is_near, near, c.mul(far, threshold));
  return Values{reduced(c, each, reduction_of(args, 2), dtype)};
}

// ---- losses of logits: (self, target, weight?, pos_weight?, reduction). ATen works in place in the target's memory,
// and with `pos_weight` in the input's memory, so these arguments do not broadcast.

bool has_sizes(ShapeContext& shapes, const TensorType& type, const TensorType& of) {
  return type.rank() == of.rank() &&
         std::equal(type.sizes.begin(), type.sizes.end(), of.sizes.begin(),
                    [&](auto a, auto b) { return a == b || shapes.env().known_equal(a, b); });
}

bool fits_within(ShapeContext& shapes, const TensorType& type, const TensorType& self) {
  if (type.dtype != self.dtype || type.rank() > self.rank()) return false;
  return std::equal(type.sizes.rbegin(), type.sizes.rend(), self.sizes.rbegin(), [&](auto a, auto b) {
    return a == b || shapes.pool().is_const(a, 1) || shapes.env().known_equal(a, b);
  });
}

Result<Types> logits_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &self = args.tensor(0), &target = args.tensor(1);
  if (!accepts(kFloat, self.dtype)) return unsupported_dtype(self.dtype, "a loss");
  if (target.dtype != self.dtype || !has_sizes(shapes, target, self)) return shapes.unsupported("another target");
  for (const size_t weight : {2, 3})
    if (!args.is_none(weight) && !fits_within(shapes, args.tensor(weight), self))
      return shapes.unsupported("a weight of another shape or dtype");
  const TensorType each = with_shape(self, target.sizes, shapes.pointwise_strides(target.sizes, {&target}));
  return reduced_loss(shapes, each, reduction_of(args, 4));
}

Result<Values> logits_body(Compose& c, const OpArgs& args) {
  const DType dtype = args.tensor(0).dtype, wide = compute_dtype(dtype);
  const ValueId x = c.cast(args.value(0), wide), target = c.cast(args.value(1), wide);
  // log(sigmoid(x)) as in the rule of log_sigmoid: min(x, 0) - log(1 + exp(-|x|))
  const ValueId decay = c.unary("aten::exp", c.unary("aten::neg", c.unary("aten::abs", x)));
  ValueId log_sigmoid = c.sub(c.call("aten::clamp_max", {x, 0.0}), c.unary("aten::log1p", decay));
  if (!args.is_none(3)) {
    const ValueId more = c.sub(c.cast(args.value(3), wide), 1.0);
    log_sigmoid = c.mul(log_sigmoid, c.add(c.mul(more, target), 1.0));
  }
  const ValueId other = c.add(c.unary("aten::neg", target), 1.0);
  ValueId each = c.sub(c.mul(other, x), log_sigmoid);
  if (!args.is_none(2)) each = c.mul(each, c.cast(args.value(2), wide));
  return Values{reduced(c, each, reduction_of(args, 4), dtype)};
}

#define LOSS(text, shape_rule, body)                                                           \
  OpDef {                                                                                      \
    .schema = "aten::" text " -> Tensor", .op_class = OpClass::Composite, .shape = shape_rule, \
    .decompose = composed<shape_rule, body>                                                    \
  }

const OpDef kLossesOps[] = {
    LOSS("mse_loss(Tensor self, Tensor target, int reduction=Mean)", difference_shape, squared_body),
    LOSS("smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0)", threshold_shape,
         threshold_body<true>),
    LOSS("huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0)", threshold_shape,
         threshold_body<false>),
    LOSS("binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
         "int reduction=Mean)",
         logits_shape, logits_body),
};

}  // namespace

std::span<const OpDef> losses_ops() { return kLossesOps; }

}  // namespace cresset::ops
