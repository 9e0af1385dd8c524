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

constexpr OpDef kLinalgOps[] = {
    {.schema = "aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> "
               "(Tensor P, Tensor L, Tensor U)",
     .op_class = OpClass::Extern,
     .shape = lu_unpack_shape,
     .traits = {.raises = Raises::Anything, .checks = Checks::NoSizes, .pivots = 1}},
};

}  // namespace

std::span<const OpDef> linalg_ops() { return kLinalgOps; }

}  // namespace cresset::ops
