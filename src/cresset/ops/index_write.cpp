// Writing at indices in tensors: the functional forms, whose result has the shape of the written tensor. Called through
// ATen, which checks the indices.
#include "ops/families.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::TensorType;

// Structured operators allocate a row-major result.
Result<Types> row_major_shape(ShapeContext& shapes, const OpArgs& args) {
  return one(contiguous_like(shapes, args.tensor(0), args.tensor(0).sizes));
}

template <size_t kDimArg>
Result<Types> along_dim_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY([[maybe_unused]] const int64_t dim, shapes.wrap_dim(args.integer(kDimArg), args.tensor(0).rank()));
  return row_major_shape(shapes, args);
}

// index_add, index_copy: the number of indices equals the number of slices of the source.
Result<Types> slices_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &index = args.tensor(2), &source = args.tensor(3);
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(1), args.tensor(0).rank()));
  const bool is_usual = index.rank() == 1 && source.rank() == args.tensor(0).rank() && source.rank() > 0;
  if (is_usual && !shapes.require_equal(index.sizes[0], source.sizes[static_cast<size_t>(dim)]))
    return shapes.invalid("as many indices as slices are needed");
  return row_major_shape(shapes, args);
}

// All other operators clone the tensor and write to the clone.
Result<Types> cloned_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  return one(with_shape(self, self.sizes, shapes.like_strides(self)));
}

Result<Types> put_shape(ShapeContext& shapes, const OpArgs& args) {
  if (args.values(1).size() > args.tensor(0).rank()) return shapes.invalid("there are more indices than dimensions");
  return cloned_shape(shapes, args);
}

Result<Types> copied_shape(ShapeContext& shapes, const OpArgs& args) {
  return one(copy_to_write(shapes, args.tensor(0)));
}

// masked_scatter(self, mask, source) broadcasts self and mask first.
Result<Types> masked_scatter_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &self = args.tensor(0), &mask = args.tensor(1);
  if (self.dtype != args.tensor(2).dtype) return shapes.invalid("self and source have different dtypes");
  CRESSET_TRY(Sizes sizes, shapes.broadcast(self.sizes, mask.sizes));
  return one(contiguous_like(shapes, self, std::move(sizes)));
}

constexpr OpDef kIndexWriteOps[] = {
    {.schema = "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
     .op_class = kExtern,
     .shape = put_shape,
     .starts_as_first = true,
     .traits = {.raises = Raises::List, .mixes_devices = true}},
    {.schema =
         "aten::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
     .op_class = kExtern,
     .shape = put_shape,
     .traits = {.checks = Checks::Nothing, .mixes_devices = true}},
    {.schema = "aten::_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) "
               "-> Tensor",
     .op_class = kExtern,
     .shape = cloned_shape,
     .traits = {.checks = Checks::Nothing, .special_dtypes = true}},
    {.schema = "aten::_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool "
               "unsafe=False) -> Tensor",
     .op_class = kExtern,
     .shape = put_shape,
     .starts_as_first = true,
     .traits = {.raises = Raises::List, .mixes_devices = true}},
    {.schema = "aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
     .op_class = kExtern,
     .shape = along_dim_shape<1>,
     .starts_as_first = true,
     .traits = {.raises = Raises::AlongDim}},
    {.schema = "aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
     .op_class = kExtern,
     .shape = along_dim_shape<1>,
     .traits = {.raises = Raises::AlongDim}},
    {.schema = "aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
     .op_class = kExtern,
     .shape = along_dim_shape<1>,
     .traits = {.raises = Raises::AlongDim}},
    {.schema = "aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
     .op_class = kExtern,
     .shape = along_dim_shape<1>,
     .traits = {.raises = Raises::AlongDim}},
    {.schema = "aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
     .op_class = kExtern,
     .shape = along_dim_shape<1>,
     .starts_as_first = true,
     .traits = {.raises = Raises::AlongDim}},
    {.schema = "aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
               "include_self=True) -> Tensor",
     .op_class = kExtern,
     .shape = along_dim_shape<1>,
     .starts_as_first = true,
     .traits = {.raises = Raises::AlongDim}},
    {.schema = "aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
     .op_class = kExtern,
     .shape = slices_shape,
     .starts_as_first = true,
     .traits = {.raises = Raises::AlongDim}},
    {.schema = "aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
     .op_class = kExtern,
     .shape = slices_shape,
     .starts_as_first = true,
     .traits = {.raises = Raises::AlongDim}},
    {.schema = "aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
     .op_class = kExtern,
     .shape = cloned_shape,
     .traits = {.raises = Raises::AlongDimEither}},
    {.schema = "aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
     .op_class = kExtern,
     .shape = cloned_shape,
     .traits = {.raises = Raises::AlongDimEither}},
    {.schema = "aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
     .op_class = kExtern,
     .shape = cloned_shape,
     .traits = {.raises = Raises::Elements}},
    {.schema = "aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
     .op_class = kExtern,
     .shape = masked_scatter_shape,
     .traits = {.raises = Raises::Anything, .special_dtypes = true}},
    {.schema = "aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
     .op_class = kExtern,
     .shape = copied_shape},
    {.schema = "aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
               "storage_offset=None) -> Tensor",
     .op_class = kExtern,
     .shape = copied_shape,
     .traits = {.by_memory = true}},
};

}  // namespace

std::span<const OpDef> index_write_ops() { return kIndexWriteOps; }

}  // namespace cresset::ops
