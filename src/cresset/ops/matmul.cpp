// Matrix products: called through ATen into planned memory, with row-major results.
#include <array>

#include "ops/compose.h"
#include "ops/families.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using sym::ExprId;

bool ranks_are(const TensorType& a, size_t rank_a, const TensorType& b, size_t rank_b) {
  return a.rank() == rank_a && b.rank() == rank_b;
}

// Checks of eager mode on two factors beyond their ranks.
Result<bool> check_factors(ShapeContext& shapes, const TensorType& a, const TensorType& b, ExprId inner_a,
                           ExprId inner_b) {
  if (a.dtype != b.dtype) return shapes.invalid("the factors' dtypes differ");
  if (!shapes.require_equal(inner_a, inner_b)) return shapes.invalid("the inner sizes differ");
  return true;
}

Result<Sizes> mm_sizes(ShapeContext& shapes, const TensorType& a, const TensorType& b) {
  if (!ranks_are(a, 2, b, 2)) return shapes.invalid("needs two matrices");
  CRESSET_TRY([[maybe_unused]] const bool checked, check_factors(shapes, a, b, a.sizes[1], b.sizes[0]));
  return Sizes{a.sizes[0], b.sizes[1]};
}

Result<Sizes> bmm_sizes(ShapeContext& shapes, const TensorType& a, const TensorType& b) {
  if (!ranks_are(a, 3, b, 3)) return shapes.invalid("needs two batches of matrices");
  CRESSET_TRY([[maybe_unused]] const bool checked, check_factors(shapes, a, b, a.sizes[2], b.sizes[1]));
  if (!shapes.require_equal(a.sizes[0], b.sizes[0])) return shapes.invalid("the batch sizes differ");
  return Sizes{a.sizes[0], a.sizes[1], b.sizes[2]};
}

Result<Sizes> mv_sizes(ShapeContext& shapes, const TensorType& a, const TensorType& b) {
  if (!ranks_are(a, 2, b, 1)) return shapes.invalid("needs a matrix and a vector");
  CRESSET_TRY([[maybe_unused]] const bool checked, check_factors(shapes, a, b, a.sizes[1], b.sizes[0]));
  return Sizes{a.sizes[0]};
}

Result<Sizes> dot_sizes(ShapeContext& shapes, const TensorType& a, const TensorType& b) {
  if (!ranks_are(a, 1, b, 1)) return shapes.invalid("needs two vectors");
  CRESSET_TRY([[maybe_unused]] const bool checked, check_factors(shapes, a, b, a.sizes[0], b.sizes[0]));
  return Sizes{};
}

Result<Sizes> addbmm_sizes(ShapeContext& shapes, const TensorType& a, const TensorType& b) {
  CRESSET_TRY(const Sizes sizes, bmm_sizes(shapes, a, b));
  return Sizes{sizes[1], sizes[2]};
}

Result<Sizes> outer_sizes(ShapeContext& shapes, const TensorType& a, const TensorType& b) {
  if (!ranks_are(a, 1, b, 1)) return shapes.invalid("needs two vectors");
  return Sizes{a.sizes[0], b.sizes[0]};
}

using SizesRule = Result<Sizes> (*)(ShapeContext&, const TensorType&, const TensorType&);

template <SizesRule kSizes>
Result<Types> product_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &a = args.tensor(0), &b = args.tensor(1);
  CRESSET_TRY(Sizes sizes, kSizes(shapes, a, b));
  return one(contiguous_like(shapes, a, std::move(sizes)));
}

// The added tensor is broadcast to the product.
template <SizesRule kSizes>
Result<Types> added_product_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &self = args.tensor(0), &a = args.tensor(1), &b = args.tensor(2);
  CRESSET_TRY(Sizes sizes, kSizes(shapes, a, b));
  if (self.dtype != a.dtype) return shapes.invalid("the added tensor has another dtype");
  if (self.rank() > sizes.size()) return shapes.invalid("the added tensor has too many dimensions");
  CRESSET_TRY(const Sizes joint, shapes.broadcast(self.sizes, sizes));
  for (size_t i = 0; i < sizes.size(); ++i)
    if (!shapes.require_equal(joint[i], sizes[i])) return shapes.invalid("the added tensor does not broadcast");
  return one(contiguous_like(shapes, a, std::move(sizes)));
}

// Computed elementwise: the layout follows the added tensor first, then the vectors as a column and a row.
Result<Types> addr_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(Types types, added_product_shape<outer_sizes>(shapes, args));
  TensorType column = args.tensor(1);
  column.sizes.push_back(shapes.pool().constant(1));
  column.strides.push_back(shapes.pool().constant(1));
  types[0].strides = shapes.pointwise_strides(types[0].sizes, {&args.tensor(0), &column, &args.tensor(2)});
  return types;
}

// Decomposes a batched product with single rows, columns or factors. Libraries need a call for each matrix of the
// batch; a fused kernel reads the data once. The folded elements must be contiguous. Half precision is excluded, since
// it rounds between the product and the sum.
Result<Values> slim_product(Compose& c, const OpArgs& args) {
  const TensorType &a = args.tensor(0), &b = args.tensor(1);
  const auto is_one = [&](ExprId size) { return c.pool().is_const(size, 1); };
  const bool column = is_one(b.sizes[2]) && is_one(a.strides[2]), row = is_one(a.sizes[1]) && is_one(b.strides[1]);
  const bool outer = is_one(a.sizes[2]) && is_one(b.sizes[1]);
  if ((a.dtype != DType::F32 && a.dtype != DType::F64) || !(column || row || outer))
    return Fallback{FallbackReason::UnsupportedArguments, "a product of matrices", ""};
  if (outer) return Values{c.mul(args.value(0), args.value(1))};
  const size_t vector = column ? 1 : 0;
  const auto turned = c.call("aten::transpose.int", {args.value(vector), c.integer(1), c.integer(2)});
  return Values{c.sum(c.mul(args.value(1 - vector), turned), {column ? 2 : 1}, /*keepdim=*/true)};
}

// _trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim): each argument lacks the dimensions of its
// `expand` list, the product is summed over `sumdim`.
Result<Types> trilinear_shape(ShapeContext& shapes, const OpArgs& args) {
  constexpr size_t kFactors = 3, kSummed = 6;
  const auto names = [&](size_t list, size_t d) {
    const auto& dims = std::get<std::vector<sym::ExprId>>(args[list]);
    return std::any_of(dims.begin(), dims.end(), [&](sym::ExprId e) { return shapes.pool().is_const(e, int64_t(d)); });
  };
  const size_t rank = args.tensor(0).rank() + std::get<std::vector<sym::ExprId>>(args[kFactors]).size();
  Sizes sizes;
  std::array<size_t, kFactors> next{};
  for (size_t d = 0; d < rank; ++d) {
    Sizes size;
    for (size_t i = 0; i < kFactors; ++i) {
      if (names(kFactors + i, d)) continue;
      if (next[i] >= args.tensor(i).rank()) return shapes.invalid("the arguments have other ranks than their lists");
      const Sizes own{args.tensor(i).sizes[next[i]++]};
      if (size.empty()) size = own;
      CRESSET_TRY(size, shapes.broadcast(size, own));
    }
    if (size.empty()) return shapes.invalid("no argument has a dimension");
    if (!names(kSummed, d)) sizes.push_back(size[0]);
  }
  return one(contiguous_like(shapes, args.tensor(0), std::move(sizes)));
}

// _scaled_mm(self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum): matrices of 8-bit floats.
Result<Types> scaled_mm_shape(ShapeContext& shapes, const OpArgs& args) {
  constexpr size_t kDType = 6;
  const TensorType &a = args.tensor(0), &b = args.tensor(1);
  if (a.rank() != 2 || b.rank() != 2) return shapes.invalid("needs matrices");
  if (!shapes.require_equal(a.sizes[1], b.sizes[0])) return shapes.invalid("the matrices do not fit");
  return one(contiguous_like(shapes, a, {a.sizes[0], b.sizes[1]}, args.dtype(kDType).value_or(a.dtype)));
}

constexpr OpDef kMatmulOps[] = {
    {.schema = "aten::mm(Tensor self, Tensor mat2) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = product_shape<mm_sizes>,
     .never_raises = true},
    {.schema = "aten::_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, "
               "Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = scaled_mm_shape,
     .traits = {.special_dtypes = true}},
    {.schema = "aten::bmm(Tensor self, Tensor mat2) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = product_shape<bmm_sizes>,
     .decompose = composed<product_shape<bmm_sizes>, slim_product>,
     .never_raises = true},
    {.schema = "aten::mv(Tensor self, Tensor vec) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = product_shape<mv_sizes>},
    {.schema = "aten::dot(Tensor self, Tensor tensor) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = product_shape<dot_sizes>},
    {.schema = "aten::vdot(Tensor self, Tensor other) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = product_shape<dot_sizes>},
    {.schema = "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = added_product_shape<mm_sizes>,
     .never_raises = true},
    {.schema = "aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = added_product_shape<bmm_sizes>,
     .never_raises = true},
    {.schema = "aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = added_product_shape<mv_sizes>},
    {.schema = "aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = added_product_shape<addbmm_sizes>},
    {.schema = "aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = addr_shape},
    {.schema = "aten::_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] "
               "sumdim, int unroll_dim=1) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = trilinear_shape,
     .traits = {.calls_others = true}},
};

}  // namespace

std::span<const OpDef> matmul_ops() { return kMatmulOps; }

}  // namespace cresset::ops
