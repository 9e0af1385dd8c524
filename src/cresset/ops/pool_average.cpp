// Averages of small windows, element by element, so that they fuse with later operators.
#include "ops/families.h"
#include "ops/pool_window.h"

namespace cresset::ops {
namespace {

using loop::Op;
using loop::ScalarId;
using sym::ExprId;
using sym::ExprPool;

// (self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
constexpr size_t kCeil = 4, kCountsPadding = 5, kDivisor = 6;

// The divisor of the sum over element `index`'s window.
ExprId divisor(ElementContext& context, const OpArgs& args, const WindowOf& window, const Index& index) {
  ExprPool& pool = context.pool();
  if (!args.is_none(kDivisor)) return args.integer(kDivisor);
  ExprId out = pool.constant(1);
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    const ExprId size = args.tensor(0).sizes[index.size() - window.kernel.size() + i];
    const ExprId extent = pool.constant(window.kernel[i]), padding = pool.constant(window.padding[i]);
    const ExprId zero = pool.constant(0);
    const ExprId start = start_of(context, window, index, i);
    const bool pads = args.flag(kCountsPadding);
    const bool whole = !args.flag(kCeil) && (pads || window.padding[i] == 0);  // no window exceeds the counted part
    const ExprId end = pool.min(pool.add(start, extent), pads ? pool.add(size, padding) : size);
    out = pool.mul(out, whole ? extent : pool.sub(end, pads ? start : pool.max(start, zero)));
  }
  return context.env().simplify(out);
}

// Sums in ATen's order: the result is equal to ATen's, apart from rounding between operators.
ScalarId average_element(ElementContext& context, const OpArgs& args, size_t spatial, const Index& index) {
  loop::ScalarBuilder& scalars = context.scalars();
  const WindowOf window = window_of(args, spatial, /*dilated=*/false);
  const DType dtype = compute_dtype(args.tensor(0).dtype);
  const ScalarId zero = scalars.constant(dtype, 0);
  ScalarId sum = zero;
  for (int64_t at = 0; at < window.elements(); ++at) {
    const WindowPlace place = place_in_window(context, args.tensor(0).sizes, window, index, at);
    ScalarId value = element_at(context, args.value(0), place);
    if (place.inside.valid()) value = scalars.select(place.inside, value, zero);
    sum = scalars.binary(Op::Add, sum, value);
  }
  return scalars.binary(Op::Div, sum, scalars.cast(scalars.size(divisor(context, args, window, index)), dtype));
}

template <size_t kSpatial>
ScalarId average_element_of(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  return average_element(context, args, kSpatial, index);
}

template <size_t kSpatial>
Result<Types> average_shape(ShapeContext& shapes, const OpArgs& args) {
  const OpDef* pool = find(kSpatial == 2 ? "aten::avg_pool2d" : "aten::avg_pool3d");
  return pool->shape(shapes, args);
}

}  // namespace

Result<std::vector<graph::ValueId>> decompose_average(graph::Graph& graph, const OpArgs& args, size_t spatial) {
  if (!is_float(args.tensor(0).dtype)) return Fallback{FallbackReason::UnsupportedDtype, "means of whole numbers", ""};
  if (window_of(args, spatial, false).elements() > kMostUnrolled)
    return Fallback{FallbackReason::UnsupportedArguments, "means of large windows", ""};
  GraphBuilder builder(graph);
  std::vector<graph::Arg> same;
  for (size_t i = 0; i < args.count(); ++i) same.push_back(args[i]);
  return std::vector{builder.call(spatial == 2 ? "prim::avg_pool2d" : "prim::avg_pool3d", std::move(same))};
}

namespace {

constexpr OpDef kPoolAverageOps[] = {
    {.schema = "prim::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
               "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = average_shape<2>,
     .element = average_element_of<2>,
     .heavy = true,
     .window = true},
    {.schema = "prim::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "
               "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = average_shape<3>,
     .element = average_element_of<3>,
     .heavy = true,
     .window = true},
};

}  // namespace

std::span<const OpDef> pool_average_ops() { return kPoolAverageOps; }

}  // namespace cresset::ops
