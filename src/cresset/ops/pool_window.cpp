#include "ops/pool_window.h"

namespace cresset::ops {

using sym::ExprId;
using sym::ExprPool;

int64_t WindowOf::elements() const {
  int64_t out = 1;
  for (const int64_t extent : kernel) out *= extent;
  return out;
}

WindowOf window_of(const OpArgs& args, size_t spatial, bool dilated) {
  const ExprPool& pool = args.graph().pool();
  const auto numbers = [&](size_t arg) {
    const std::vector<ExprId>& list = args.integers(arg);
    std::vector<int64_t> out;
    for (size_t i = 0; i < spatial; ++i) out.push_back(pool.const_value(list[list.size() == 1 ? 0 : i]));
    return out;
  };
  return {numbers(1), numbers(args.integers(2).empty() ? 1 : 2), numbers(3),
          dilated ? numbers(4) : std::vector<int64_t>(spatial, 1)};
}

namespace {

void demand(ElementContext& context, WindowPlace& place, loop::Op op, ExprId index, ExprId bound, bool certain) {
  if (certain) return;
  loop::ScalarBuilder& scalars = context.scalars();
  const loop::ScalarId condition = scalars.binary(op, scalars.size(index), scalars.size(bound));
  place.inside = place.inside.valid() ? scalars.binary(loop::Op::BitAnd, place.inside, condition) : condition;
}

}  // namespace

ExprId start_of(ElementContext& context, const WindowOf& window, const Index& index, size_t i) {
  ExprPool& pool = context.pool();
  const ExprId first = pool.mul(index[index.size() - window.kernel.size() + i], pool.constant(window.stride[i]));
  return pool.sub(first, pool.constant(window.padding[i]));
}

WindowPlace place_in_window(ElementContext& context, const Sizes& image, const WindowOf& window, const Index& index,
                            int64_t at) {
  ExprPool& pool = context.pool();
  WindowPlace place{index, {}};
  const size_t spatial = window.kernel.size();
  std::vector<int64_t> step(spatial);
  for (size_t i = spatial; i-- > 0; at /= window.kernel[i]) step[i] = at % window.kernel[i];
  for (size_t i = 0; i < spatial; ++i) {
    const size_t dim = index.size() - spatial + i;
    const ExprId from_start = pool.constant(step[i] * window.dilation[i]);
    const ExprId here = context.env().simplify(pool.add(start_of(context, window, index, i), from_start));
    const ExprId zero = pool.constant(0), last = pool.sub(image[dim], pool.constant(1));
    demand(context, place, loop::Op::Ge, here, zero, context.env().known_true(pool.ge(here, zero)));
    demand(context, place, loop::Op::Le, here, last, context.env().known_true(pool.le(here, last)));
    place.index[dim] = here;
  }
  return place;
}

loop::ScalarId element_at(ElementContext& context, graph::ValueId image, const WindowPlace& place) {
  return place.inside.valid() ? context.element_where(place.inside, image, place.index)
                              : context.element(image, place.index);
}

}  // namespace cresset::ops
