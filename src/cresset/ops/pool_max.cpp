// Maxima of small windows and their positions, element by element, so that they fuse with later operators.
#include <limits>

#include "ops/families.h"
#include "ops/pool_window.h"

namespace cresset::ops {
namespace {

using loop::Op;
using loop::ScalarId;
using sym::ExprId;
using sym::ExprPool;

constexpr size_t kSpatial = 2;

// Combines the row and the column of a position to a linear index in the plane.
ExprId in_plane(ElementContext& context, const OpArgs& args, ExprId row, ExprId column) {
  ExprPool& pool = context.pool();
  return context.env().simplify(pool.add(pool.mul(row, args.tensor(0).sizes.back()), column));
}

// The distance from the window's start to its first element inside the image.
ExprId steps_to_inside(ElementContext& context, const WindowOf& window, const Index& index, size_t i) {
  ExprPool& pool = context.pool();
  if (window.padding[i] == 0) return pool.constant(0);
  const ExprId outside = pool.sub(pool.constant(0), start_of(context, window, index, i));
  const ExprId step = pool.constant(window.dilation[i]);
  const ExprId steps = pool.floor_div(pool.add(outside, pool.constant(window.dilation[i] - 1)), step);
  return pool.mul(pool.max(steps, pool.constant(0)), step);
}

// As in ATen, the first of equal elements wins, and the last NaN. `choose` receives, for each element, whether it
// replaces the greatest element so far.
template <class Choose>
ScalarId greatest(ElementContext& context, const OpArgs& args, const Index& index, const Choose& choose) {
  loop::ScalarBuilder& scalars = context.scalars();
  const WindowOf window = window_of(args, kSpatial, /*dilated=*/true);
  const DType dtype = compute_dtype(args.tensor(0).dtype);
  ScalarId most = scalars.constant(dtype, -std::numeric_limits<double>::infinity());
  for (int64_t at = 0; at < window.elements(); ++at) {
    const WindowPlace place = place_in_window(context, args.tensor(0).sizes, window, index, at);
    const ScalarId value = element_at(context, args.value(0), place);
    const ScalarId is_nan = scalars.binary(Op::Ne, value, value);
    ScalarId better = scalars.binary(Op::BitOr, scalars.binary(Op::Gt, value, most), is_nan);
    if (place.inside.valid()) better = scalars.binary(Op::BitAnd, place.inside, better);
    most = scalars.select(better, value, most);
    choose(at, better);
  }
  return most;
}

ScalarId greatest_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  return greatest(context, args, index, [](int64_t, ScalarId) {});
}

// Selects the distance from the window's start, which is equal for all windows.
ScalarId place_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  loop::ScalarBuilder& scalars = context.scalars();
  ExprPool& pool = context.pool();
  const WindowOf window = window_of(args, kSpatial, /*dilated=*/true);
  const auto along = [&](const auto& of, size_t i) { return of(context, window, index, i); };
  ScalarId from_start = scalars.size(in_plane(context, args, along(steps_to_inside, 0), along(steps_to_inside, 1)));
  greatest(context, args, index, [&](int64_t at, ScalarId better) {
    const ExprId row = pool.constant(at / window.kernel[1] * window.dilation[0]);
    const ExprId column = pool.constant(at % window.kernel[1] * window.dilation[1]);
    from_start = scalars.select(better, scalars.size(in_plane(context, args, row, column)), from_start);
  });
  const ScalarId start = scalars.size(in_plane(context, args, along(start_of, 0), along(start_of, 1)));
  return scalars.binary(Op::Add, start, from_start);
}

template <size_t kResult>
Result<Types> shape_of(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(const Types both, find("aten::max_pool2d_with_indices")->shape(shapes, args));
  return one(both[kResult]);
}

}  // namespace

Result<std::vector<graph::ValueId>> decompose_greatest(graph::Graph& graph, const OpArgs& args) {
  if (!is_float(args.tensor(0).dtype))
    return Fallback{FallbackReason::UnsupportedDtype, "windows of whole numbers", ""};
  if (window_of(args, kSpatial, /*dilated=*/true).elements() > kMostUnrolled)
    return Fallback{FallbackReason::UnsupportedArguments, "maxima of large windows", ""};
  GraphBuilder builder(graph);
  std::vector<graph::Arg> same;
  for (size_t i = 0; i < args.count(); ++i) same.push_back(args[i]);
  const graph::ValueId values = builder.call("prim::max_pool2d", same);
  return std::vector{values, builder.call("prim::max_pool2d_places", std::move(same))};
}

namespace {

constexpr OpDef kPoolMaxOps[] = {
    {.schema = "prim::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
               "dilation=1, bool ceil_mode=False) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<0>,
     .element = greatest_element,
     .heavy = true,
     .window = true},
    {.schema = "prim::max_pool2d_places(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
               "dilation=1, bool ceil_mode=False) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = shape_of<1>,
     .element = place_element,
     .heavy = true,
     .window = true},
};

}  // namespace

std::span<const OpDef> pool_max_ops() { return kPoolMaxOps; }

}  // namespace cresset::ops
