// Operators which read their argument at a shifted, wrapped or mirrored index, or not at all: pad, roll, flip, repeat,
// tril, triu, slice_scatter, select_scatter. They are pointwise; elements outside the argument are not loaded.
#include <algorithm>

#include "ops/families.h"
#include "ops/rule_helpers.h"
#include "ops/view_groups.h"
#include "ops/view_slice.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using loop::Op;
using loop::ScalarBuilder;
using loop::ScalarId;
using sym::ExprId;
using sym::ExprPool;

// Whether an index lies in the argument, as a scalar. Invalid when every index certainly does.
struct Window {
  ScalarId inside;
  bool certain() const { return !inside.valid(); }
};

void add_condition(ScalarBuilder& scalars, Window& window, ScalarId condition) {
  window.inside = window.certain() ? condition : scalars.binary(Op::BitAnd, window.inside, condition);
}

// Adds the conditions 0 <= index < size, unless they are certain.
void demand_inside(ElementContext& context, ExprId index, ExprId size, Window& window) {
  ExprPool& pool = context.pool();
  ScalarBuilder& scalars = context.scalars();
  const ExprId zero = pool.constant(0), last = pool.sub(size, pool.constant(1));
  if (!context.env().known_true(pool.ge(index, zero)))
    add_condition(scalars, window, scalars.binary(Op::Ge, scalars.size(index), scalars.size(zero)));
  if (!context.env().known_true(pool.le(index, last)))
    add_condition(scalars, window, scalars.binary(Op::Le, scalars.size(index), scalars.size(last)));
}

// ---- constant_pad_nd(self, pad, value): pad lists (before, after) from the last dimension on

struct Pad {
  ExprId before, after;
};

Pad pad_of(ExprPool& pool, const OpArgs& args, size_t dim) {
  const std::vector<ExprId>& pads = args.integers(1);
  const size_t from_last = args.tensor(0).rank() - 1 - dim;
  if (2 * from_last >= pads.size()) return {pool.constant(0), pool.constant(0)};
  return {pads[2 * from_last], pads[2 * from_last + 1]};
}

Result<Types> pad_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  const std::vector<ExprId>& pads = args.integers(1);
  ExprPool& pool = shapes.pool();
  const ExprId zero = pool.constant(0);
  if (pads.size() % 2 != 0 || pads.size() > 2 * self.rank()) return shapes.invalid("the padding does not fit");
  Sizes sizes;
  for (size_t dim = 0; dim < self.rank(); ++dim) {
    const Pad pad = pad_of(pool, args, dim);
    sizes.push_back(shapes.env().simplify(pool.add(self.sizes[dim], pool.add(pad.before, pad.after))));
    if (!shapes.require(pool.ge(sizes[dim], zero))) return shapes.invalid("the padding leaves a negative size");
    const ExprId cut_off = pool.add(pool.min(pad.before, zero), pool.min(pad.after, zero));  // before padding is added
    if (!shapes.require(pool.ge(pool.add(self.sizes[dim], cut_off), zero)))
      return shapes.invalid("more is cut off than there is");
  }
  TensorType out = with_shape(self, sizes, self.strides);
  // A padding which only cuts keeps the order of strides. Usually both layouts are equal, and the amount of padding
  // need not be known.
  const Sizes cut = shapes.like_strides(out), padded = shapes.strides_for(shapes.suggest_format(self), sizes);
  const auto cuts = [&](ExprId amount) { return shapes.decide(pool.le(amount, zero)); };
  out.strides = cut != padded && std::all_of(pads.begin(), pads.end(), cuts) ? cut : padded;
  if (category(out.dtype) == DTypeCategory::Complex) return shapes.unsupported("complex numbers");
  return one(std::move(out));
}

ScalarId pad_element(ElementContext& context, const OpArgs& args, size_t result, const Index& index) {
  const TensorType& self = args.tensor(0);
  ExprPool& pool = context.pool();
  Window window;
  Index from = index;
  for (size_t dim = 0; dim < index.size(); ++dim) {
    const Pad pad = pad_of(pool, args, dim);
    if (pool.is_const(pad.before, 0) && pool.is_const(pad.after, 0)) continue;
    if (context.env().known_equal(self.sizes[dim], pool.constant(0)))
      return context.number_operand(args, 2, context.result_type(result).dtype);
    from[dim] = context.env().simplify(pool.sub(index[dim], pad.before));
    demand_inside(context, from[dim], self.sizes[dim], window);
  }
  if (window.certain()) return context.element(args.value(0), from);
  const ScalarId inner = context.element_where(window.inside, args.value(0), from);
  const ScalarId outer = context.number_operand(args, 2, context.result_type(result).dtype);
  return context.scalars().select(window.inside, inner, outer);
}

// ---- reflection_pad, replication_pad(self, padding), over the last kDims dimensions. Meta kernels give contiguous
// results.

template <int64_t kDims, bool kReflects>
Result<Types> edge_pad_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  const auto rank = static_cast<int64_t>(self.rank());
  if ((rank != kDims + 1 && rank != kDims + 2) || args.integers(1).size() != 2 * kDims)
    return shapes.invalid("unexpected dimensions");
  ExprPool& pool = shapes.pool();
  const ExprId one_element = pool.constant(1);
  Sizes sizes = self.sizes;
  for (size_t dim = size_t(rank - kDims - 1); dim < sizes.size(); ++dim) {
    if (!shapes.require(pool.ge(self.sizes[dim], one_element))) return shapes.invalid("a dimension of size 0");
    if (dim < size_t(rank - kDims)) continue;  // channels
    const Pad pad = pad_of(pool, args, dim);
    if (kReflects &&
        (!shapes.require(pool.lt(pad.before, self.sizes[dim])) || !shapes.require(pool.lt(pad.after, self.sizes[dim]))))
      return shapes.invalid("the padding is as long as the dimension");
    sizes[dim] = shapes.env().simplify(pool.add(self.sizes[dim], pool.add(pad.before, pad.after)));
    if (!shapes.require(pool.ge(sizes[dim], one_element))) return shapes.invalid("the padding leaves nothing");
  }
  Sizes strides = shapes.strides_for(shapes.suggest_format(self), sizes);
  return one(with_shape(self, std::move(sizes), std::move(strides)));
}

// ---- roll(self, shifts, dims)

Result<Types> roll_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  const std::vector<ExprId>&shifts = args.integers(1), &dims = args.integers(2);
  if (dims.empty() && shifts.size() == 1 && self.rank() != 1) return shapes.unsupported("rolling a flattened tensor");
  if (shifts.empty() || (shifts.size() != dims.size() && !(dims.empty() && shifts.size() == 1)))
    return shapes.invalid("shifts and dims do not match");
  for (const ExprId dim : dims) {
    CRESSET_TRY([[maybe_unused]] const int64_t wrapped, shapes.wrap_dim(dim, self.rank()));
  }
  if (self.rank() == 0) return shapes.invalid("a scalar has no dimension to roll along");
  if (category(self.dtype) == DTypeCategory::Complex) return shapes.unsupported("complex numbers");
  if (shapes.pool().is_const(graph::numel(shapes.pool(), self.sizes), 0)) return one(self);  // ATen copies it unchanged
  // ATen concatenates two parts; if one part is empty, the result is row-major.
  if (shifts.size() == 1 && dims.size() == 1 && shapes.pool().is_const(shifts[0])) {
    CRESSET_TRY(const int64_t dim, shapes.wrap_dim(dims[0], self.rank()));
    const ExprId size = self.sizes[size_t(dim)];
    if (shapes.pool().is_const(size) && shapes.pool().const_value(shifts[0]) % shapes.pool().const_value(size) == 0)
      return one(contiguous_like(shapes, self, self.sizes));
  }
  Sizes strides = shapes.strides_for(shapes.suggest_format(self), self.sizes);
  return one(with_shape(self, self.sizes, std::move(strides)));
}

// Rolls the last dimension by 0 <= shift < size. Lanes usually run along this dimension, and a remainder in the index
// would need a gather. Instead, two contiguous reads are combined element by element.
ScalarId roll_last(ElementContext& context, const OpArgs& args, ExprId shift, Index from) {
  ExprPool& pool = context.pool();
  ScalarBuilder& scalars = context.scalars();
  const ExprId place = from.back(), size = args.tensor(0).sizes.back();
  const ScalarId inside = scalars.binary(Op::Ge, scalars.size(place), scalars.size(shift));
  from.back() = context.env().simplify(pool.sub(place, shift));
  const ScalarId straight = context.element_where(inside, args.value(0), from);
  from.back() = context.env().simplify(pool.add(from.back(), size));
  const ScalarId outside = scalars.binary(Op::Lt, scalars.size(place), scalars.size(shift));
  return scalars.select(inside, straight, context.element_where(outside, args.value(0), from));
}

ScalarId roll_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const TensorType& self = args.tensor(0);
  const std::vector<ExprId>&shifts = args.integers(1), &dims = args.integers(2);
  ExprPool& pool = context.pool();
  Index from = index;
  std::vector<ExprId> by(index.size(), pool.constant(0));
  for (size_t i = 0; i < shifts.size(); ++i) {
    const size_t dim = dims.empty() ? 0 : size_t(known_dim_value(pool.const_value(dims[i]), index.size()));
    by[dim] = pool.add(by[dim], shifts[i]);
  }
  for (size_t dim = 0; dim + 1 < index.size(); ++dim)
    if (!pool.is_const(by[dim], 0))
      from[dim] = context.env().simplify(pool.mod(pool.sub(from[dim], by[dim]), self.sizes[dim]));
  if (pool.is_const(by.back(), 0)) return context.element(args.value(0), from);
  const ExprId around = pool.max(self.sizes.back(), pool.constant(1));
  return roll_last(context, args, context.env().simplify(pool.mod(by.back(), around)), std::move(from));
}

// ---- channel_shuffle(self, groups): views channels as [groups, channels of a group] and transposes both

Result<Types> channel_shuffle_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  ExprPool& pool = shapes.pool();
  const ExprId groups = args.integer(1);
  if (self.rank() < 3) return shapes.invalid("needs at least 3 dimensions");
  if (!shapes.require(pool.ge(groups, pool.constant(1)))) return shapes.invalid("groups must be positive");
  if (!shapes.require(pool.eq(pool.mod(self.sizes[1], groups), pool.constant(0))))
    return shapes.invalid("groups do not divide the channels");
  if (category(self.dtype) == DTypeCategory::Complex) return shapes.unsupported("complex numbers");
  return one(with_shape(self, self.sizes, shapes.strides_for(shapes.suggest_format(self), self.sizes)));
}

ScalarId channel_shuffle_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  ExprPool& pool = context.pool();
  const ExprId groups = args.integer(1), of_a_group = pool.floor_div(args.tensor(0).sizes[1], groups);
  Index from = index;
  from[1] = context.env().simplify(
      pool.add(pool.mul(pool.mod(index[1], groups), of_a_group), pool.floor_div(index[1], groups)));
  return context.element(args.value(0), from);
}

// ---- flip(self, dims)

Result<Types> flip_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  std::vector<bool> seen(std::max<size_t>(self.rank(), 1), false);
  for (const ExprId d : args.integers(1)) {
    CRESSET_TRY(const int64_t dim, shapes.wrap_dim(d, self.rank()));
    if (seen[size_t(dim)]) return shapes.invalid("a dimension is repeated");
    seen[size_t(dim)] = true;
  }
  if (category(self.dtype) == DTypeCategory::Complex) return shapes.unsupported("complex numbers");
  return one(with_shape(self, self.sizes, shapes.like_strides(self)));
}

ScalarId flip_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  ExprPool& pool = context.pool();
  Index from = index;
  for (const ExprId d : args.integers(1)) {
    if (index.empty()) break;
    const auto dim = size_t(known_dim_value(pool.const_value(d), index.size()));
    from[dim] = pool.sub(pool.sub(args.tensor(0).sizes[dim], pool.constant(1)), index[dim]);
  }
  return context.element(args.value(0), from);
}

// ---- repeat(self, repeats): repeats may have more dimensions than self

Result<Types> repeat_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  const std::vector<ExprId>& repeats = args.integers(1);
  if (repeats.size() < self.rank()) return shapes.invalid("fewer repeats than dimensions");
  if (category(self.dtype) == DTypeCategory::Complex) return shapes.unsupported("complex numbers");
  const size_t added = repeats.size() - self.rank();
  Sizes sizes = repeats;
  for (const ExprId count : repeats)
    if (!shapes.require(shapes.pool().ge(count, shapes.pool().constant(0)))) return shapes.invalid("negative repeats");
  for (size_t i = 0; i < self.rank(); ++i) sizes[added + i] = shapes.pool().mul(repeats[added + i], self.sizes[i]);
  return one(contiguous_like(shapes, self, std::move(sizes)));
}

ScalarId repeat_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const TensorType& self = args.tensor(0);
  const std::vector<ExprId>& repeats = args.integers(1);
  ExprPool& pool = context.pool();
  const size_t added = index.size() - self.rank();
  Index from(index.begin() + std::ptrdiff_t(added), index.end());
  for (size_t i = 0; i < from.size(); ++i) {
    if (is_one(context.env(), self.sizes[i]))
      from[i] = pool.constant(0);
    else if (!is_one(context.env(), repeats[added + i]))
      from[i] = context.env().simplify(pool.mod(from[i], self.sizes[i]));
  }
  return context.element(args.value(0), from);
}

// ---- tril, triu (self, diagonal)

Result<Types> triangle_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (self.rank() < 2) return shapes.invalid("needs at least 2 dimensions");
  if (category(self.dtype) == DTypeCategory::Complex) return shapes.unsupported("complex numbers");
  return one(contiguous_like(shapes, self, self.sizes));
}

template <bool kLower>
ScalarId triangle_element(ElementContext& context, const OpArgs& args, size_t result, const Index& index) {
  ExprPool& pool = context.pool();
  ScalarBuilder& scalars = context.scalars();
  const ScalarId limit = scalars.size(pool.add(index[index.size() - 2], args.integer(1)));
  const ScalarId column = scalars.size(index.back());
  const ScalarId kept = scalars.binary(kLower ? Op::Le : Op::Ge, column, limit);
  const DType held = compute_dtype(context.result_type(result).dtype);
  const ScalarId zero = is_float(held) ? scalars.constant(held, 0) : scalars.constant_int(held, 0);
  return scalars.select(kept, context.element(args.value(0), index), zero);
}

// ---- slice_scatter(self, src, dim, start, end, step), select_scatter(self, src, dim, index)

Result<Types> scattered(ShapeContext& shapes, const TensorType& self, const TensorType& src) {
  if (category(self.dtype) == DTypeCategory::Complex) return shapes.unsupported("complex numbers");
  if (src.dtype != self.dtype) return shapes.unsupported("a source of another dtype");
  return one(copy_to_write(shapes, self));
}

Result<Types> slice_scatter_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &self = args.tensor(0), &src = args.tensor(1);
  if (self.rank() == 0 || src.rank() != self.rank()) return shapes.invalid("the source's shape does not fit");
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(2), self.rank()));
  CRESSET_TRY(const SliceBounds bounds, slice_bounds(shapes, args, self.sizes[size_t(dim)], 3));
  for (size_t i = 0; i < self.rank(); ++i)
    if (!shapes.require_equal(src.sizes[i], i == size_t(dim) ? bounds.length : self.sizes[i]))
      return shapes.invalid("the source's shape does not fit the slice");
  // Nothing of an empty slice is read, since no index is inside it (element_where).
  return scattered(shapes, self, src);
}

ScalarId slice_scatter_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const TensorType &self = args.tensor(0), &src = args.tensor(1);
  ExprPool& pool = context.pool();
  ScalarBuilder& scalars = context.scalars();
  const auto dim = size_t(known_dim(args, 2, self.rank()));
  const ExprId step = args.integer(5);
  if (context.env().known_equal(src.sizes[dim], pool.constant(0))) return context.element(args.value(0), index);
  const ExprId offset = pool.sub(index[dim], slice_start(context.env(), args, self.sizes[dim], 3));
  Window window;
  Index from = index;
  from[dim] = context.env().simplify(pool.floor_div(offset, step));
  demand_inside(context, from[dim], src.sizes[dim], window);
  if (!pool.is_const(step, 1)) {
    const ScalarId remainder = scalars.size(pool.mod(offset, step));
    add_condition(scalars, window, scalars.binary(Op::Eq, remainder, scalars.constant_int(DType::I64, 0)));
  }
  if (window.certain()) return context.element(args.value(1), from);
  const ScalarId inner = context.element_where(window.inside, args.value(1), from);
  return scalars.select(window.inside, inner, context.element(args.value(0), index));
}

Result<Types> select_scatter_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &self = args.tensor(0), &src = args.tensor(1);
  if (self.rank() == 0 || src.rank() + 1 != self.rank()) return shapes.invalid("the source's shape does not fit");
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(2), self.rank()));
  ExprPool& pool = shapes.pool();
  const ExprId size = self.sizes[size_t(dim)], at = args.integer(3);
  if (shapes.env().hint(at)) shapes.decide(pool.lt(at, pool.constant(0)));  // data-dependent: counts from either end
  if (!shapes.require(pool.le(pool.neg(size), at)) || !shapes.require(pool.lt(at, size)))
    return shapes.invalid("the index is out of range");
  for (size_t i = 0; i < src.rank(); ++i)
    if (!shapes.require_equal(src.sizes[i], self.sizes[i < size_t(dim) ? i : i + 1]))
      return shapes.invalid("the source's shape does not fit");
  return scattered(shapes, self, src);
}

ScalarId select_scatter_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const TensorType& self = args.tensor(0);
  ScalarBuilder& scalars = context.scalars();
  const int64_t dim = known_dim(args, 2, self.rank());
  const ExprId at = index_from_front(context.env(), args.integer(3), self.sizes[size_t(dim)]);
  const ScalarId here = scalars.binary(Op::Eq, scalars.size(index[size_t(dim)]), scalars.size(at));
  Index from = index;
  from.erase(from.begin() + std::ptrdiff_t(dim));
  return scalars.select(here, context.element(args.value(1), from), context.element(args.value(0), index));
}

constexpr OpClass kPointwise = OpClass::Pointwise;

constexpr OpDef kCatPadOps[] = {
    {.schema = "aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
     .op_class = kPointwise,
     .shape = pad_shape,
     .element = pad_element},
    {.schema = "aten::reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = edge_pad_shape<1, true>},
    {.schema = "aten::reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = edge_pad_shape<2, true>},
    {.schema = "aten::reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = edge_pad_shape<3, true>},
    {.schema = "aten::replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = edge_pad_shape<1, false>},
    {.schema = "aten::replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = edge_pad_shape<2, false>},
    {.schema = "aten::replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = edge_pad_shape<3, false>},
    {.schema = "aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
     .op_class = kPointwise,
     .shape = roll_shape,
     .element = roll_element},
    {.schema = "aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor",
     .op_class = kPointwise,
     .shape = channel_shuffle_shape,
     .element = channel_shuffle_element},
    {.schema = "aten::flip(Tensor self, int[] dims) -> Tensor",
     .op_class = kPointwise,
     .shape = flip_shape,
     .element = flip_element},
    {.schema = "aten::repeat(Tensor self, SymInt[] repeats) -> Tensor",
     .op_class = kPointwise,
     .shape = repeat_shape,
     .element = repeat_element},
    {.schema = "aten::tril(Tensor self, SymInt diagonal=0) -> Tensor",
     .op_class = kPointwise,
     .shape = triangle_shape,
     .element = triangle_element<true>},
    {.schema = "aten::triu(Tensor self, SymInt diagonal=0) -> Tensor",
     .op_class = kPointwise,
     .shape = triangle_shape,
     .element = triangle_element<false>},
    {.schema = "aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
               "step=1) -> Tensor",
     .op_class = kPointwise,
     .shape = slice_scatter_shape,
     .element = slice_scatter_element},
    {.schema = "aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
     .op_class = kPointwise,
     .shape = select_scatter_shape,
     .element = select_scatter_element},
};

}  // namespace

std::span<const OpDef> cat_pad_ops() { return kCatPadOps; }

}  // namespace cresset::ops
