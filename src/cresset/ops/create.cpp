// Tensors created from sizes and numbers. All are pointwise without operands, so a consumer reads them at no cost. A
// tensor read only by fused kernels is never filled. `empty` reads as zeros.
#include <cmath>

#include "ops/families.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::Device;
using graph::MemoryFormat;
using graph::TensorType;
using loop::Op;
using loop::ScalarBuilder;
using loop::ScalarId;
using sym::ExprId;
using sym::ExprPool;

Device device_or(const OpArgs& args, size_t i, Device otherwise) {
  return args.is_none(i) ? otherwise : std::get<Device>(args[i]);
}

MemoryFormat format_or(const OpArgs& args, size_t i, MemoryFormat otherwise) {
  return args.is_none(i) ? otherwise : std::get<MemoryFormat>(args[i]);
}

// Kernels do not compute with complex numbers.
Result<Types> computable(ShapeContext& shapes, TensorType type) {
  if (category(type.dtype) == DTypeCategory::Complex) return shapes.unsupported("complex numbers");
  return one(std::move(type));
}

Result<Sizes> checked_sizes(ShapeContext& shapes, const Sizes& sizes) {
  for (const ExprId size : sizes)
    if (!shapes.require(shapes.pool().ge(size, shapes.pool().constant(0)))) return shapes.invalid("a size is negative");
  return sizes;
}

// torch.full's rule: the dtype of a Python number as a tensor.
DType dtype_of_number(ShapeContext& shapes, const graph::Arg& number) {
  if (std::holds_alternative<bool>(number)) return DType::Bool;
  return std::holds_alternative<ExprId>(number) ? DType::I64 : shapes.default_dtype;
}

// ---- zeros, ones, full, empty: size first, then (value,) dtype, layout, device, pin_memory

template <size_t kDtypeArg>
Result<Types> sized_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(Sizes sizes, checked_sizes(shapes, args.integers(0)));
  TensorType out;
  const DType otherwise = kDtypeArg == 2 ? dtype_of_number(shapes, args[1]) : shapes.default_dtype;
  out.dtype = args.dtype(kDtypeArg).value_or(otherwise);
  out.device = device_or(args, kDtypeArg + 2, Device{});
  out.strides = shapes.contiguous_strides(sizes);
  out.sizes = std::move(sizes);
  return computable(shapes, std::move(out));
}

Result<Types> empty_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(Types types, sized_shape<1>(shapes, args));
  const MemoryFormat format = format_or(args, 5, MemoryFormat::Contiguous);
  if (!has_rank_of(format, types[0].rank())) return shapes.invalid("the memory format is of another rank");
  if (format == MemoryFormat::Preserve) return shapes.invalid("no tensor has a format to preserve");
  types[0].strides = shapes.strides_for(format, types[0].sizes);
  return types;
}

Result<Types> empty_strided_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out;
  CRESSET_TRY(out.sizes, checked_sizes(shapes, args.integers(0)));
  out.strides = args.integers(1);
  if (out.sizes.size() != out.strides.size()) return shapes.invalid("sizes and strides differ in number");
  out.dtype = args.dtype(2).value_or(shapes.default_dtype);
  out.device = device_or(args, 4, Device{});
  return computable(shapes, std::move(out));
}

Result<Types> scalar_tensor_shape(ShapeContext& shapes, const OpArgs& args) {
  return computable(shapes, {args.dtype(1).value_or(shapes.default_dtype), device_or(args, 3, Device{}), {}, {}});
}

// ---- *_like: self, (value,) dtype, layout, device, pin_memory, memory_format

template <size_t kDtypeArg>
Result<Types> like_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  const MemoryFormat format = format_or(args, kDtypeArg + 4, MemoryFormat::Preserve);
  if (!has_rank_of(format, self.rank())) return shapes.invalid("the memory format is of another rank");
  TensorType out = with_shape(self, self.sizes, {});
  out.strides = format == MemoryFormat::Preserve ? shapes.like_strides(self) : shapes.strides_for(format, self.sizes);
  out.dtype = args.dtype(kDtypeArg).value_or(self.dtype);
  out.device = device_or(args, kDtypeArg + 2, self.device);
  return computable(shapes, std::move(out));
}

// ---- new_*: self, size, (value or stride,) dtype, layout, device, pin_memory

template <size_t kDtypeArg>
Result<Types> new_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  CRESSET_TRY(Sizes sizes, checked_sizes(shapes, args.integers(1)));
  TensorType out = contiguous_like(shapes, self, std::move(sizes), args.dtype(kDtypeArg).value_or(self.dtype));
  out.device = device_or(args, kDtypeArg + 2, self.device);
  return computable(shapes, std::move(out));
}

Result<Types> new_empty_strided_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(Types types, new_shape<3>(shapes, args));
  types[0].strides = args.integers(2);
  return types;
}

Result<Types> fill_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (args.is_tensor(1) && args.tensor(1).rank() != 0) return shapes.invalid("the value must be a 0-dim tensor");
  return computable(shapes, with_shape(self, self.sizes, shapes.like_strides(self)));
}

// ---- elements

ScalarId number(ScalarBuilder& scalars, DType dtype, int64_t value) {
  const DType held = compute_dtype(dtype);
  return is_float(held) ? scalars.constant(held, double(value)) : scalars.constant_int(held, value);
}

ScalarId zero_element(ElementContext& context, const OpArgs&, size_t result, const Index&) {
  return number(context.scalars(), context.result_type(result).dtype, 0);
}

ScalarId one_element(ElementContext& context, const OpArgs&, size_t result, const Index&) {
  return number(context.scalars(), context.result_type(result).dtype, 1);
}

template <size_t kArg>
ScalarId argument_element(ElementContext& context, const OpArgs& args, size_t result, const Index& index) {
  return context.operand(args, kArg, index, context.result_type(result).dtype);
}

ScalarId eye_element(ElementContext& context, const OpArgs&, size_t result, const Index& index) {
  ScalarBuilder& scalars = context.scalars();
  const ScalarId same = scalars.binary(Op::Eq, scalars.size(index[0]), scalars.size(index[1]));
  return scalars.cast(same, context.result_type(result).dtype);
}

Result<Types> eye_shape(ShapeContext& shapes, const OpArgs& args) {
  const bool square = !std::holds_alternative<ExprId>(args[1]);
  const size_t dtype_arg = square ? 1 : 2;
  CRESSET_TRY(Sizes sizes, checked_sizes(shapes, {args.integer(0), args.integer(square ? 0 : 1)}));
  TensorType out{
      args.dtype(dtype_arg).value_or(shapes.default_dtype), device_or(args, dtype_arg + 2, Device{}), {}, {}};
  out.strides = shapes.contiguous_strides(sizes);
  out.sizes = std::move(sizes);
  return computable(shapes, std::move(out));
}

constexpr OpClass kPointwise = OpClass::Pointwise;

constexpr OpDef kCreateOps[] = {
    {.schema = "aten::zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
               "pin_memory=None) -> Tensor",
     .op_class = kPointwise,
     .shape = sized_shape<1>,
     .element = zero_element,
     .traits = {.uniform = true}},
    {.schema = "aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
               "pin_memory=None) -> Tensor",
     .op_class = kPointwise,
     .shape = sized_shape<1>,
     .element = one_element,
     .traits = {.uniform = true}},
    {.schema = "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None) -> Tensor",
     .op_class = kPointwise,
     .shape = sized_shape<2>,
     .element = argument_element<1>,
     .traits = {.uniform = true}},
    {.schema = "aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .op_class = kPointwise,
     .shape = empty_shape,
     .element = zero_element},
    {.schema = "aten::empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, "
               "Device? device=None, bool? pin_memory=None) -> Tensor",
     .op_class = kPointwise,
     .shape = empty_strided_shape,
     .element = zero_element},
    {.schema = "aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None) -> Tensor",
     .op_class = kPointwise,
     .shape = scalar_tensor_shape,
     .element = argument_element<0>},
    {.schema = "aten::zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .op_class = kPointwise,
     .shape = like_shape<1>,
     .element = zero_element},
    {.schema = "aten::ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .op_class = kPointwise,
     .shape = like_shape<1>,
     .element = one_element,
     .traits = {.of_layout = true}},
    {.schema = "aten::empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .op_class = kPointwise,
     .shape = like_shape<1>,
     .element = zero_element},
    {.schema = "aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
               "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .op_class = kPointwise,
     .shape = like_shape<2>,
     .element = argument_element<1>,
     .traits = {.of_layout = true}},
    {.schema = "aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None) -> Tensor",
     .op_class = kPointwise,
     .shape = new_shape<2>,
     .element = zero_element,
     .traits = {.uniform = true}},
    {.schema = "aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None) -> Tensor",
     .op_class = kPointwise,
     .shape = new_shape<2>,
     .element = one_element,
     .traits = {.of_layout = true, .uniform = true}},
    {.schema = "aten::new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None) -> Tensor",
     .op_class = kPointwise,
     .shape = new_shape<2>,
     .element = zero_element},
    {.schema = "aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? "
               "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .op_class = kPointwise,
     .shape = new_shape<3>,
     .element = argument_element<2>,
     .traits = {.of_layout = true, .uniform = true}},
    {.schema = "aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, "
               "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .op_class = kPointwise,
     .shape = new_empty_strided_shape,
     .element = zero_element},
    {.schema = "aten::fill.Scalar(Tensor self, Scalar value) -> Tensor",
     .op_class = kPointwise,
     .shape = fill_shape,
     .element = argument_element<1>,
     .traits = {.of_layout = true}},
    {.schema = "aten::fill.Tensor(Tensor self, Tensor value) -> Tensor",
     .op_class = kPointwise,
     .shape = fill_shape,
     .element = argument_element<1>,
     .traits = {.of_layout = true}},
    {.schema = "aten::eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
               "pin_memory=None) -> Tensor",
     .op_class = kPointwise,
     .shape = eye_shape,
     .element = eye_element},
    {.schema = "aten::eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None) -> Tensor",
     .op_class = kPointwise,
     .shape = eye_shape,
     .element = eye_element},
};

}  // namespace

std::span<const OpDef> create_ops() { return kCreateOps; }

}  // namespace cresset::ops
