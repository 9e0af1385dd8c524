// Operators of no other family: losses, linear algebra, and operators whose result has a data-dependent shape.
#include "ops/families.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using sym::ExprId;

// A real and an imaginary part, or a distance and an angle.
Result<Types> complex_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &a = args.tensor(0), &b = args.tensor(1);
  if (a.dtype != b.dtype || !is_float(a.dtype) || a.dtype == DType::BF16)
    return shapes.unsupported("complex values of such numbers");
  CRESSET_TRY(Sizes sizes, shapes.broadcast(a.sizes, b.sizes));
  Sizes strides = shapes.pointwise_strides(sizes, {&a, &b});
  TensorType out = with_shape(a, std::move(sizes), std::move(strides));
  out.dtype = a.dtype == DType::F16 ? DType::C32 : a.dtype == DType::F32 ? DType::C64 : DType::C128;
  return one(std::move(out));
}

// linalg_cholesky_ex(A, upper, check_errors) -> (L, info); L is column-major.
Result<Types> cholesky_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& a = args.tensor(0);
  if (a.rank() < 2) return shapes.invalid("needs a matrix");
  if (a.dtype != DType::F32 && a.dtype != DType::F64) return shapes.unsupported("factors of other numbers");
  const size_t rows = a.rank() - 2, columns = a.rank() - 1;
  if (!shapes.require_equal(a.sizes[rows], a.sizes[columns])) return shapes.invalid("needs square matrices");
  TensorType factor = contiguous_like(shapes, a, a.sizes);
  std::swap(factor.strides[rows], factor.strides[columns]);
  TensorType info = contiguous_like(shapes, a, {a.sizes.begin(), a.sizes.end() - 2});
  info.dtype = DType::I32;
  return Types{std::move(factor), std::move(info)};
}

// _linalg_svd(A, full_matrices, compute_uv, driver) -> (U, S, Vh); LAPACK's matrices are column-major.
Result<Types> svd_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& a = args.tensor(0);
  if (a.rank() < 2) return shapes.invalid("needs a matrix");
  if (a.dtype != DType::F32 && a.dtype != DType::F64) return shapes.unsupported("singular values of other numbers");
  const ExprId rows = a.sizes[a.rank() - 2], columns = a.sizes[a.rank() - 1];
  const ExprId count = shapes.pool().min(rows, columns);
  const auto of = [&](Sizes last) {
    Sizes sizes(a.sizes.begin(), a.sizes.end() - 2);
    sizes.insert(sizes.end(), last.begin(), last.end());
    return contiguous_like(shapes, a, std::move(sizes));
  };
  const auto by_columns = [&](ExprId m, ExprId n) {
    TensorType out = of({n, m});
    std::swap(out.sizes[a.rank() - 2], out.sizes[a.rank() - 1]);
    std::swap(out.strides[a.rank() - 2], out.strides[a.rank() - 1]);
    return out;
  };
  if (!args.flag_or(2, true)) {
    const TensorType none = contiguous_like(shapes, a, {shapes.pool().constant(0)});
    return Types{none, of({count}), none};
  }
  const bool full = args.flag_or(1, false);
  return Types{by_columns(rows, full ? rows : count), of({count}), by_columns(full ? columns : count, columns)};
}

// A distance for each pair of rows.
Result<Types> pdist_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (self.rank() != 2) return shapes.unsupported("not a matrix");
  sym::ExprPool& pool = shapes.pool();
  const sym::ExprId rows = self.sizes[0], others = pool.sub(rows, pool.constant(1));
  return one(contiguous_like(shapes, self, {pool.floor_div(pool.mul(rows, others), pool.constant(2))}));
}

Result<Types> isin_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& elements = args.tensor(0);
  if (category(elements.dtype) == DTypeCategory::Complex) return shapes.unsupported("complex numbers");
  return one(contiguous_like(shapes, elements, elements.sizes, DType::Bool));
}

// nonzero_static(self, size, fill_value)
Result<Types> nonzero_static_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  const sym::ExprId rank = shapes.pool().constant(static_cast<int64_t>(self.rank()));
  return one(contiguous_like(shapes, self, {args.integer(1), rank}, DType::I64));
}

// ---- losses(self, target, weight, reduction, ignore_index) -> (output, total weight)

constexpr int64_t kNoReduction = 0;

Result<Types> nll_loss_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &self = args.tensor(0), &target = args.tensor(1);
  if (self.rank() == 0 || self.rank() > 2 || target.rank() > 1) return shapes.invalid("unexpected dimensions");
  if (target.rank() == 1 && self.rank() == 2 && !shapes.require_equal(self.sizes[0], target.sizes[0]))
    return shapes.invalid("input and target differ in batch size");
  const bool each = shapes.constant(args.integer(3)) == kNoReduction && self.rank() == 2;
  return Types{contiguous_like(shapes, self, each ? Sizes{self.sizes[0]} : Sizes{}), contiguous_like(shapes, self, {})};
}

Result<Types> nll_loss2d_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &self = args.tensor(0), &target = args.tensor(1);
  if (self.rank() != 4 || target.rank() != 3) return shapes.invalid("unexpected dimensions");
  const bool each = shapes.constant(args.integer(3)) == kNoReduction;
  return Types{contiguous_like(shapes, self, each ? target.sizes : Sizes{}), contiguous_like(shapes, self, {})};
}

// ---- fake quantization: the values of a quantized tensor, and a mask of the values in its range

bool is_range(ShapeContext& shapes, const OpArgs& args, size_t low) {
  return shapes.constant(args.integer(low)) <= shapes.constant(args.integer(low + 1));
}

Types quantized(ShapeContext& shapes, const TensorType& self) {
  const TensorType values = with_shape(self, self.sizes, shapes.like_strides(self));
  TensorType mask = values;
  mask.dtype = DType::Bool;
  return {values, std::move(mask)};
}

Result<Types> quantized_shape(ShapeContext& shapes, const OpArgs& args) {
  const int64_t zero = shapes.constant(args.integer(2));
  const bool zero_is_inside = shapes.constant(args.integer(3)) <= zero && zero <= shapes.constant(args.integer(4));
  if (args.tensor(0).dtype != DType::F32 || !is_range(shapes, args, 3) || !zero_is_inside)
    return shapes.unsupported("another fake quantization");
  return quantized(shapes, args.tensor(0));
}

Result<Types> quantized_by_channel_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &self = args.tensor(0), &scale = args.tensor(1), &zero = args.tensor(2);
  const int64_t axis = shapes.constant(args.integer(3));
  const bool fits = scale.rank() == 1 && zero.rank() == 1 && 0 <= axis && axis < static_cast<int64_t>(self.rank());
  if (self.dtype != DType::F32 || scale.dtype != DType::F32 || zero.dtype != DType::I32 || !fits ||
      !is_range(shapes, args, 4))
    return shapes.unsupported("another fake quantization");
  for (const TensorType* of_channels : {&scale, &zero})
    if (!shapes.require_equal(of_channels->sizes[0], self.sizes[static_cast<size_t>(axis)]))
      return shapes.unsupported("scales of other channels");
  return quantized(shapes, self);
}

// ---- data-dependent results

Result<Types> data_dependent_shape(ShapeContext&, const OpArgs&) {
  return Fallback{FallbackReason::DataDependent, "a result whose shape or value depends on tensor data", ""};
}

constexpr OpDef kMiscOps[] = {
    {.schema = "aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, "
               "Tensor info)",
     .op_class = kExtern,
     .shape = cholesky_shape,
     .traits = {.raises = Raises::Asked, .of_matrices = true}},
    {.schema = "aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> "
               "(Tensor U, Tensor S, Tensor Vh)",
     .op_class = kExtern,
     .shape = svd_shape,
     .traits = {.raises = Raises::Anything, .checks = Checks::Everything}},
    {.schema = "aten::complex(Tensor real, Tensor imag) -> Tensor", .op_class = kExtern, .shape = complex_shape},
    {.schema = "aten::polar(Tensor abs, Tensor angle) -> Tensor", .op_class = kExtern, .shape = complex_shape},
    {.schema = "aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool "
               "invert=False) -> Tensor",
     .op_class = kExtern,
     .shape = isin_shape},
    {.schema = "aten::isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool "
               "invert=False) -> Tensor",
     .op_class = kExtern,
     .shape = isin_shape},
    {.schema = "aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
     .op_class = kExtern,
     .shape = nonzero_static_shape,
     .traits = {.inference = Inference::RunsOften}},
    {.schema = "aten::_pdist_forward(Tensor self, float p=2) -> Tensor", .op_class = kExtern, .shape = pdist_shape},
    {.schema = "aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) "
               "-> (Tensor output, Tensor total_weight)",
     .op_class = kExtern,
     .shape = nll_loss_shape,
     .traits = {.raises = Raises::Targets}},
    {.schema = "aten::nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
               "ignore_index) -> (Tensor output, Tensor total_weight)",
     .op_class = kExtern,
     .shape = nll_loss2d_shape,
     .traits = {.raises = Raises::Targets}},
    {.schema = "aten::nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, "
               "SymInt ignore_index, Tensor total_weight) -> Tensor",
     .op_class = kExtern,
     .shape = contiguous_as_shape<1>},
    {.schema =
         "aten::fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, "
         "int quant_max) -> (Tensor output, Tensor mask)",
     .op_class = kExtern,
     .shape = quantized_shape},
    {.schema =
         "aten::fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, "
         "int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
     .op_class = kExtern,
     .shape = quantized_by_channel_shape},
    {.schema = "aten::_local_scalar_dense(Tensor self) -> Scalar", .op_class = kExtern, .shape = data_dependent_shape},
    {.schema = "aten::nonzero(Tensor self) -> Tensor", .op_class = kExtern, .shape = data_dependent_shape},
    {.schema = "aten::masked_select(Tensor self, Tensor mask) -> Tensor",
     .op_class = kExtern,
     .shape = data_dependent_shape},
    {.schema = "aten::equal(Tensor self, Tensor other) -> bool", .op_class = kExtern, .shape = data_dependent_shape},
    {.schema = "aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
               "(Tensor, Tensor, Tensor)",
     .op_class = kExtern,
     .shape = data_dependent_shape},
    {.schema = "aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
               "return_counts=False) -> (Tensor, Tensor, Tensor)",
     .op_class = kExtern,
     .shape = data_dependent_shape},
    {.schema = "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? "
               "dim=None) -> (Tensor, Tensor, Tensor)",
     .op_class = kExtern,
     .shape = data_dependent_shape},
    {.schema = "aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
     .op_class = kExtern,
     .shape = data_dependent_shape,
     .traits = {.raises = Raises::Anything}},
    {.schema = "aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
     .op_class = kExtern,
     .shape = data_dependent_shape,
     .traits = {.raises = Raises::Anything}},
};

}  // namespace

std::span<const OpDef> misc_ops() { return kMiscOps; }

}  // namespace cresset::ops
