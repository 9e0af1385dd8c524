// Copies and conversions.
#include "ops/families.h"
#include "ops/pointwise_types.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::MemoryFormat;
using graph::TensorType;

// Strides of a copy of `self` made with the memory format in argument i (None: Preserve).
Result<std::vector<sym::ExprId>> copy_strides(ShapeContext& shapes, const OpArgs& args, size_t i,
                                              const TensorType& self) {
  const auto* format = std::get_if<MemoryFormat>(&args[i]);
  if (format == nullptr || *format == MemoryFormat::Preserve) return shapes.like_strides(self);
  if (!has_rank_of(*format, self.rank())) return shapes.invalid("the memory format is of another rank");
  return shapes.strides_for(*format, self.sizes);
}

Result<Types> to_copy_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out = args.tensor(0);
  const DType dtype = args.dtype(1).value_or(out.dtype);
  if (!accepts(kStored, dtype)) return unsupported_dtype(dtype, "_to_copy");
  if (!accepts(kStored, out.dtype)) return unsupported_dtype(out.dtype, "_to_copy");
  if (const auto* device = std::get_if<graph::Device>(&args[3]); device && *device != out.device)
    return shapes.unsupported("a copy to another device");
  if (args.flag_or(4, false)) return shapes.unsupported("pinned memory");
  CRESSET_TRY(out.strides, copy_strides(shapes, args, 6, out));
  out.dtype = dtype;
  return Types{std::move(out)};
}

Result<Types> clone_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out = args.tensor(0);
  if (!accepts(kStored, out.dtype)) return unsupported_dtype(out.dtype, "clone");
  CRESSET_TRY(out.strides, copy_strides(shapes, args, 1, out));
  return Types{std::move(out)};
}

loop::ScalarId first_argument(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  return context.operand(args, 0, index, context.result_type(0).dtype);
}
loop::ScalarId second_argument(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  return context.operand(args, 1, index, context.result_type(0).dtype);
}

// copy(self, src): src with the type of self.
Result<Types> copy_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out = args.tensor(0);
  const TensorType& source = args.tensor(1);
  if (!accepts(kStored, out.dtype) || !accepts(kStored, source.dtype)) return unsupported_dtype(source.dtype, "copy");
  if (source.device != out.device) return shapes.unsupported("a copy between devices");
  if (source.rank() > out.rank()) return shapes.invalid("the source has more dimensions than the destination");
  CRESSET_TRY(const std::vector<sym::ExprId> sizes, shapes.broadcast(out.sizes, source.sizes));
  for (size_t i = 0; i < sizes.size(); ++i)
    if (!shapes.require_equal(sizes[i], out.sizes[i])) return shapes.invalid("the source does not expand to self");
  // Gaps between elements are preserved, overlaps are not.
  for (size_t i = 0; i < out.rank(); ++i) {
    const bool one = shapes.pool().is_const(out.sizes[i], 1);
    if (!one && shapes.pool().is_const(out.strides[i], 0)) out.strides = shapes.like_strides(args.tensor(0));
  }
  return Types{std::move(out)};
}

// The memory format is the last argument.
bool keeps_format(const OpArgs& args) {
  const auto* format = std::get_if<graph::MemoryFormat>(&args[args.count() - 1]);
  return format == nullptr || *format == graph::MemoryFormat::Preserve;
}

const OpDef kPointwiseCopyOps[] = {
    {.schema = "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = to_copy_shape,
     .element = first_argument,
     .is_no_op = keeps_format,
     .traits = {.elements = Elements::Kept, .mixes_devices = true}},
    {.schema = "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = clone_shape,
     .element = first_argument,
     .is_no_op = keeps_format,
     .traits = {.elements = Elements::Kept}},
    {.schema = "aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = copy_shape,
     .element = second_argument,
     .traits = {.mixes_devices = true}},
};

}  // namespace

std::span<const OpDef> pointwise_copy_ops() { return kPointwiseCopyOps; }

}  // namespace cresset::ops
