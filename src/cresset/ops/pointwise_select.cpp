// Selection between values: where, masked_fill, clamp.
#include "ops/families.h"
#include "ops/pointwise_types.h"

namespace cresset::ops {
namespace {

using graph::TensorType;

constexpr size_t kChoices[] = {1, 2};

Result<Types> where_shape(ShapeContext& shapes, const OpArgs& args) {
  if (args.tensor(0).dtype != DType::Bool) return unsupported_dtype(args.tensor(0).dtype, "a condition");
  const DType common = result_dtype(args.graph(), args, kChoices, shapes.default_dtype);
  if (!accepts(kReal, common)) return unsupported_dtype(common, "where");
  return pointwise_result(shapes, args, first_operands<3>(), common, common, 1);
}

loop::ScalarId where(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType dtype = context.result_type(0).dtype;
  const S condition = operand(context, args, 0, index, DType::Bool);
  const S then = operand(context, args, 1, index, dtype);
  return select(condition, then, operand(context, args, 2, index, dtype)).id;
}

// The result has the dtype of self and is always contiguous.
Result<Types> masked_fill_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (!accepts(kReal, self.dtype)) return unsupported_dtype(self.dtype, "masked_fill");
  if (args.tensor(1).dtype != DType::Bool) return unsupported_dtype(args.tensor(1).dtype, "a mask");
  if (args.is_tensor(2) && args.tensor(2).rank() != 0) return shapes.invalid("the value must have no dimensions");
  const DType value = args.is_tensor(2) ? args.tensor(2).dtype : number_dtype(args[2], DType::F32);
  if (category(value) > category(self.dtype)) return shapes.unsupported("a value that the tensor's dtype cannot hold");
  TensorType out = self;
  CRESSET_TRY(out.sizes, shapes.broadcast(self.sizes, args.tensor(1).sizes));
  out.strides = shapes.contiguous_strides(out.sizes);
  return Types{std::move(out)};
}

loop::ScalarId masked_fill(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const DType dtype = context.result_type(0).dtype;
  const S mask = operand(context, args, 1, index, DType::Bool);
  const S value = operand(context, args, 2, index, dtype);
  return select(mask, value, operand(context, args, 0, index, dtype)).id;
}

// NaN in self or in a bound is the result. If the lower bound exceeds the upper bound, the upper bound is the result.
loop::ScalarId clamp_between(ElementContext& context, const OpArgs& args, const Index& index, int low, int high) {
  const DType dtype = context.result_type(0).dtype;
  S x = operand(context, args, 0, index, dtype);
  if (low >= 0 && !args.is_none(static_cast<size_t>(low)))
    x = maximum(x, operand(context, args, static_cast<size_t>(low), index, dtype));
  if (high >= 0 && !args.is_none(static_cast<size_t>(high)))
    x = minimum(x, operand(context, args, static_cast<size_t>(high), index, dtype));
  return x.id;
}

// ATen iterates over the tensor alone: numbers are not operands.
Types lying_as_first(ShapeContext& shapes, const OpArgs& args, Types types) {
  graph::TensorType self = args.tensor(0);
  if (self.dtype != types[0].dtype) self.strides = shapes.like_strides(self);
  types[0].strides = shapes.pointwise_strides(self.sizes, {&self});
  return types;
}

Result<Types> clamp_shape(ShapeContext& shapes, const OpArgs& args) {
  if (args.is_none(1) && args.is_none(2)) return shapes.invalid("at least one of min and max must not be None");
  CRESSET_TRY(Types types, (shape_of<3, kNumeric, Out::Common>(shapes, args)));
  return args.is_tensor(1) || args.is_tensor(2) ? std::move(types) : lying_as_first(shapes, args, std::move(types));
}
Result<Types> clamp_at_number_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(Types types, (shape_of<2, kNumeric, Out::Common>(shapes, args)));
  return args.is_tensor(1) ? std::move(types) : lying_as_first(shapes, args, std::move(types));
}
loop::ScalarId clamp(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  return clamp_between(context, args, index, 1, 2);
}
loop::ScalarId clamp_min(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  return clamp_between(context, args, index, 1, -1);
}
loop::ScalarId clamp_max(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  return clamp_between(context, args, index, -1, 1);
}

Result<Types> hardtanh_shape(ShapeContext& shapes, const OpArgs& args) {
  return shape_of<1, kFloat, Out::Common>(shapes, args);
}

const OpDef kPointwiseSelectOps[] = {
    {.schema = "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = where_shape,
     .element = where},
    {.schema = "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = masked_fill_shape,
     .element = masked_fill},
    {.schema = "aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = masked_fill_shape,
     .element = masked_fill},
    {.schema = "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = clamp_shape,
     .element = clamp},
    {.schema = "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = clamp_shape,
     .element = clamp},
    {.schema = "aten::clamp_min(Tensor self, Scalar min) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = clamp_at_number_shape,
     .element = clamp_min},
    {.schema = "aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<2, kNumeric, Out::Common>,
     .element = clamp_min},
    {.schema = "aten::clamp_max(Tensor self, Scalar max) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = clamp_at_number_shape,
     .element = clamp_max},
    {.schema = "aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<2, kNumeric, Out::Common>,
     .element = clamp_max},
    {.schema = "aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = hardtanh_shape,
     .element = clamp},
};

}  // namespace

std::span<const OpDef> pointwise_select_ops() { return kPointwiseSelectOps; }

}  // namespace cresset::ops
