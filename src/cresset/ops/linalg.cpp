// Linear algebra that ATen computes: the shapes of the results. Other operators of this family take their shapes from a
// run on small matrices (bridge/capture/python_meta.h).
#include "ops/families.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using sym::ExprId;

// lu_unpack of an m x n matrix: P is m x m, L is m x k, U is k x n with k = min(m, n). Factors that are not asked for
// have no elements.
Result<Types> lu_unpack_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& packed = args.tensor(0);
  if (packed.rank() < 2) return shapes.invalid("a matrix is needed");
  const bool data = args.flag(2), pivots = args.flag(3);
  if (pivots && args.tensor(1).dtype != DType::I32) return shapes.invalid("the pivots are not of int32");
  const ExprId rows = packed.sizes[packed.rank() - 2], columns = packed.sizes[packed.rank() - 1];
  const ExprId least = shapes.pool().min(rows, columns);
  const auto factor = [&](bool wanted, ExprId height, ExprId width) {
    if (!wanted) return contiguous_like(shapes, packed, {shapes.pool().constant(0)});
    Sizes sizes = packed.sizes;
    sizes[sizes.size() - 2] = height;
    sizes[sizes.size() - 1] = width;
    return contiguous_like(shapes, packed, std::move(sizes));
  };
  return Types{factor(pivots, rows, rows), factor(data, rows, least), factor(data, least, columns)};
}

// The solution of a system with factors LU and right-hand sides B: like B, with the batches of both, in columns (in
// rows for a system from the right).
Result<TensorType> lu_solution(ShapeContext& shapes, const TensorType& factors, const TensorType& right, bool left) {
  const size_t rank = factors.rank();
  if (rank < 2 || right.rank() < 2) return shapes.invalid("matrices are needed");
  if (factors.dtype != right.dtype) return shapes.invalid("the factors and the right-hand sides have different dtypes");
  const ExprId rows = right.sizes[right.rank() - 2], columns = right.sizes.back();
  if (!shapes.require_equal(factors.sizes[rank - 2], factors.sizes[rank - 1]) ||
      !shapes.require_equal(factors.sizes[rank - 1], left ? rows : columns))
    return shapes.invalid("the factors are square and fit the right-hand sides");
  const auto batch_of = [](const TensorType& type) { return Sizes(type.sizes.begin(), type.sizes.end() - 2); };
  CRESSET_TRY(Sizes sizes, shapes.broadcast(batch_of(factors), batch_of(right)));
  sizes.insert(sizes.end(), {rows, columns});
  Sizes strides = shapes.contiguous_strides(sizes);
  if (left) {
    strides[strides.size() - 2] = shapes.pool().constant(1);
    strides.back() = rows;
  }
  return with_shape(right, std::move(sizes), std::move(strides));
}

Result<Types> linalg_lu_solve_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(TensorType out, lu_solution(shapes, args.tensor(0), args.tensor(2), args.flag_or(3, true)));
  return one(std::move(out));
}

Result<Types> lu_solve_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(TensorType out, lu_solution(shapes, args.tensor(1), args.tensor(0), /*left=*/true));
  return one(std::move(out));
}

constexpr OpDef kLinalgOps[] = {
    {.schema = "aten::linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> "
               "Tensor",
     .op_class = OpClass::Extern,
     .shape = linalg_lu_solve_shape,
     .traits = {.raises = Raises::Unknown,
                .checks = Checks::NoSizes,
                .pivots = 1,
                .special_dtypes = true,
                .of_matrices = true}},
    {.schema = "aten::lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = lu_solve_shape,
     .traits = {.raises = Raises::Unknown, .checks = Checks::NoSizes, .pivots = 2, .special_dtypes = true}},
    {.schema = "aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> "
               "(Tensor P, Tensor L, Tensor U)",
     .op_class = OpClass::Extern,
     .shape = lu_unpack_shape,
     .traits = {.raises = Raises::Anything, .checks = Checks::NoSizes, .pivots = 1, .special_dtypes = true}},
};

}  // namespace

std::span<const OpDef> linalg_ops() { return kLinalgOps; }

}  // namespace cresset::ops
