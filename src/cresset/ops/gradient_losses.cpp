// Derivatives of losses with respect to their input: (grad, self, target, ...). They compute in the compute dtype and
// round once, at the end.
#include "ops/compose.h"
#include "ops/families.h"
#include "ops/pointwise_types.h"
#include "ops/reduce_types.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using graph::ValueId;

constexpr int64_t kMean = 1;

// The gradient is a single number, or has a number for each element. Other broadcasts go through ATen.
Result<Types> same_sizes(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(1);
  if (!accepts(kFloat, self.dtype)) return unsupported_dtype(self.dtype, "a loss's derivative");
  for (const size_t other : {0, 2}) {
    const TensorType& type = args.tensor(other);
    if (type.dtype != self.dtype || type.device != self.device) return shapes.unsupported("a loss of two dtypes");
    if (other == 0 && type.rank() == 0) continue;
    if (type.rank() != self.rank()) return shapes.unsupported("a loss of two shapes");
    for (size_t d = 0; d < self.rank(); ++d)
      if (!shapes.env().known_equal(type.sizes[d], self.sizes[d])) return shapes.unsupported("a loss of two shapes");
  }
  return one(self);
}

// ATen writes most of these gradients into row-major zeros.
Result<Types> row_major(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(Types types, same_sizes(shapes, args));
  return one(contiguous_like(shapes, types[0], types[0].sizes));
}

Result<Types> like_self(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(Types types, same_sizes(shapes, args));
  types[0].strides = shapes.like_strides(types[0]);
  return types;
}

// For a threshold which is not positive, eager mode computes another function.
Result<Types> with_threshold(ShapeContext& shapes, const OpArgs& args) {
  const std::optional<double> threshold = constant_number(args.graph(), args[4]);
  if (!threshold || !(*threshold > 0)) return shapes.unsupported("a threshold that is not known to be positive");
  return row_major(shapes, args);
}

ValueId wide(Compose& c, const OpArgs& args, size_t i) {
  return c.cast(args.value(i), compute_dtype(args.tensor(1).dtype));
}

// Multiplies the derivative of each element's loss by the derivative of the reduction.
Values by_mean(Compose& c, const OpArgs& args, ValueId each, size_t reduction) {
  const TensorType& self = args.tensor(1);
  if (c.pool().const_value(args.integer(reduction)) == kMean) each = c.div(each, graph::numel(c.pool(), self.sizes));
  return {c.cast(each, self.dtype)};
}

Result<Values> squared_body(Compose& c, const OpArgs& args) {
  const ValueId slope = c.mul(c.sub(wide(c, args, 1), wide(c, args, 2)), 2.0);
  return by_mean(c, args, c.mul(slope, wide(c, args, 0)), 3);
}

// The difference, clamped to the threshold. For the smooth loss it is divided by the threshold.
template <bool Smooth>
Result<Values> threshold_body(Compose& c, const OpArgs& args) {
  const double threshold = constant_number(args.graph(), args[4]).value();
  const ValueId difference = c.sub(wide(c, args, 1), wide(c, args, 2));
  ValueId slope = c.call("aten::clamp", {difference, -threshold, threshold});
  if (Smooth) slope = c.div(slope, threshold);
  return by_mean(c, args, c.mul(slope, wide(c, args, 0)), 3);
}

// (grad, self, target, weight?, reduction): the input consists of probabilities. Eager mode bounds the derivatives of
// their logarithms.
Result<Types> probabilities_shape(ShapeContext& shapes, const OpArgs& args) {
  if (!args.is_none(3)) return shapes.unsupported("weights");
  return like_self(shapes, args);
}

Result<Values> probabilities_body(Compose& c, const OpArgs& args) {
  constexpr double kLeast = 1e-12;
  const ValueId p = wide(c, args, 1);
  const ValueId spread = c.mul(c.add(c.unary("aten::neg", p), 1.0), p);
  const ValueId slope = c.div(c.sub(p, wide(c, args, 2)), c.call("aten::clamp_min", {spread, kLeast}));
  return by_mean(c, args, c.mul(slope, wide(c, args, 0)), 4);
}

#define DERIVATIVE(text, shape_rule, body)                                                     \
  OpDef {                                                                                      \
    .schema = "aten::" text " -> Tensor", .op_class = OpClass::Composite, .shape = shape_rule, \
    .decompose = composed<shape_rule, body>                                                    \
  }

const OpDef kGradientLossesOps[] = {
    DERIVATIVE("mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction)", row_major,
               squared_body),
    DERIVATIVE("smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta)",
               with_threshold, threshold_body<true>),
    DERIVATIVE("huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta)",
               with_threshold, threshold_body<false>),
    DERIVATIVE("binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int "
               "reduction=Mean)",
               probabilities_shape, probabilities_body),
};

}  // namespace

std::span<const OpDef> gradient_losses_ops() { return kGradientLossesOps; }

}  // namespace cresset::ops
