// Views which cut: slice, select, split, unbind, diagonal, unfold, as_strided. Bounds are clamped as in eager mode. If
// hints can decide, a guard selects the clamp and sizes stay simple. Data-dependent bounds use min and max. So do cuts
// at a number (x[:, :512], x[:, -512:]), since the program expects shorter and longer inputs.
#include "ops/view_slice.h"

#include <algorithm>
#include <numeric>

#include "ops/families.h"
#include "ops/rule_helpers.h"
#include "ops/view_groups.h"

namespace cresset::ops {

using graph::TensorType;
using sym::ExprId;
using sym::ExprPool;

ExprId from_either_end(ExprPool& pool, ExprId bound, ExprId size) {
  const ExprId zero = pool.constant(0), one = pool.constant(1);
  const ExprId is_negative = pool.max(zero, pool.min(one, pool.sub(zero, bound)));
  return pool.add(bound, pool.mul(size, is_negative));
}

ExprId index_from_front(sym::ShapeEnv& env, ExprId index, ExprId size) {
  ExprPool& pool = env.pool();
  const ExprId zero = pool.constant(0);
  if (env.known_true(pool.lt(index, zero))) return pool.add(index, size);
  const bool from_front = env.hint(index) || env.known_true(pool.ge(index, zero));
  return from_front ? index : from_either_end(pool, index, size);
}

namespace {

constexpr int64_t kEnd = INT64_MAX;

// Decides by facts or by guarded hints; nullopt for a data-dependent condition.
std::optional<bool> decide_if_backed(ShapeContext& shapes, ExprId condition) {
  if (std::optional<bool> known = shapes.env().statically_known(condition)) return known;
  if (!shapes.env().hint(condition)) return std::nullopt;
  return shapes.decide(condition);
}

// Whether a constant bound keeps some elements of every non-empty input, and all elements of short inputs. Other bounds
// (x[1:], x[:-1]) keep nothing of inputs which are too short; generality for these is not useful.
bool cuts_at_number(const ExprPool& pool, ExprId bound, bool is_start) {
  return pool.is_const(bound) && (is_start ? pool.const_value(bound) <= -2 : pool.const_value(bound) >= 2);
}

// Resolves a bound: a negative bound counts from the end, and the result is clamped to [least, size].
ExprId clamp_bound(ShapeContext& shapes, ExprId bound, ExprId least, ExprId size, bool is_start) {
  ExprPool& pool = shapes.pool();
  if (pool.is_const(bound, kEnd) || bound == size) return size;
  const bool cuts = cuts_at_number(pool, bound, is_start);
  if (cuts && is_start) return shapes.env().simplify(pool.max(pool.add(bound, size), least));
  if (cuts) bound = shapes.env().simplify(pool.min(bound, size));
  const std::optional<bool> negative = decide_if_backed(shapes, pool.lt(bound, pool.constant(0)));
  if (!negative) bound = from_either_end(pool, bound, size);
  if (negative.value_or(false)) bound = pool.add(bound, size);
  if (negative.value_or(true) || !pool.is_const(least, 0)) {
    const ExprId is_below = pool.lt(bound, least);
    const std::optional<bool> below =
        cuts ? shapes.env().statically_known(is_below) : decide_if_backed(shapes, is_below);
    if (below.value_or(false)) return least;
    if (!below) bound = pool.max(bound, least);
  }
  if (cuts) return bound;
  const std::optional<bool> inside = decide_if_backed(shapes, pool.le(bound, size));
  if (!inside) return pool.min(bound, size);
  return *inside ? bound : size;
}

}  // namespace

Result<SliceBounds> slice_bounds(ShapeContext& shapes, const OpArgs& args, ExprId size, size_t start_arg) {
  ExprPool& pool = shapes.pool();
  const ExprId zero = pool.constant(0);
  const ExprId step = args.integer(start_arg + 2);
  if (!shapes.require(pool.gt(step, zero))) return shapes.invalid("the step must be positive");
  const ExprId first = args.is_none(start_arg) ? zero : args.integer(start_arg);
  const ExprId last = args.is_none(start_arg + 1) ? pool.constant(kEnd) : args.integer(start_arg + 1);
  const ExprId start = clamp_bound(shapes, first, zero, size, true);
  const ExprId end = clamp_bound(shapes, last, start, size, false);
  // size - max(size - 512, 0) is min(size, 512).
  const bool is_tail = end == size && cuts_at_number(pool, first, true);
  const ExprId covered = is_tail ? pool.min(size, pool.neg(first)) : pool.sub(end, start);
  const ExprId length = shapes.env().simplify(pool.ceil_div(covered, step));
  return SliceBounds{start, length, step};
}

// Elements exist only where the bounds were in range, so no upper clamp is needed here.
ExprId slice_start(sym::ShapeEnv& env, const OpArgs& args, ExprId size, size_t start_arg) {
  ExprPool& pool = env.pool();
  const ExprId zero = pool.constant(0);
  if (args.is_none(start_arg)) return zero;
  const ExprId start = args.integer(start_arg);
  const bool negative = env.known_true(pool.lt(start, zero));
  if (!negative && (env.hint(start) || env.known_true(pool.ge(start, zero)))) return start;
  const ExprId wrapped = negative ? pool.add(start, size) : from_either_end(pool, start, size);
  return env.known_true(pool.ge(wrapped, zero)) ? wrapped : env.simplify(pool.max(wrapped, zero));
}

int64_t known_dim(const OpArgs& args, size_t arg, size_t rank) {
  const int64_t dim = args.constant(arg);
  return dim < 0 ? dim + int64_t(rank) : dim;
}

namespace {

Result<Types> slice_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out = args.tensor(0);
  if (out.rank() == 0) return shapes.invalid("a 0-dim tensor cannot be sliced");
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(1), out.rank()));
  CRESSET_TRY(const SliceBounds bounds, slice_bounds(shapes, args, out.sizes[size_t(dim)], 2));
  out.sizes[size_t(dim)] = bounds.length;
  out.strides[size_t(dim)] = shapes.pool().mul(out.strides[size_t(dim)], bounds.step);
  return one(std::move(out));
}

Index slice_view(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const TensorType& self = args.tensor(0);
  const auto dim = size_t(known_dim(args, 1, self.rank()));
  ExprPool& pool = context.pool();
  Index out = index;
  out[dim] = pool.add(slice_start(context.env(), args, self.sizes[dim], 2), pool.mul(index[dim], args.integer(4)));
  return out;
}

// ---- select, unbind

Result<Types> select_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out = args.tensor(0);
  if (out.rank() == 0) return shapes.invalid("a 0-dim tensor has no element to select");
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(1), out.rank()));
  ExprPool& pool = shapes.pool();
  const ExprId size = out.sizes[size_t(dim)], index = args.integer(2);
  decide_if_backed(shapes, pool.lt(index, pool.constant(0)));  // a data-dependent index counts from either end
  if (!shapes.require(pool.le(pool.neg(size), index)) || !shapes.require(pool.lt(index, size)))
    return shapes.invalid("the index is out of range");
  out.sizes.erase(out.sizes.begin() + std::ptrdiff_t(dim));
  out.strides.erase(out.strides.begin() + std::ptrdiff_t(dim));
  return one(std::move(out));
}

Index select_view(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const TensorType& self = args.tensor(0);
  const int64_t dim = known_dim(args, 1, self.rank());
  const ExprId at = index_from_front(context.env(), args.integer(2), self.sizes[size_t(dim)]);
  Index out = index;
  out.insert(out.begin() + std::ptrdiff_t(dim), at);
  return out;
}

Result<Types> unbind_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out = args.tensor(0);
  if (out.rank() == 0) return shapes.invalid("a 0-dim tensor cannot be unbound");
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(1), out.rank()));
  const int64_t count = shapes.constant(out.sizes[size_t(dim)]);
  out.sizes.erase(out.sizes.begin() + std::ptrdiff_t(dim));
  out.strides.erase(out.strides.begin() + std::ptrdiff_t(dim));
  return Types(size_t(count), out);
}

Index unbind_view(ElementContext& context, const OpArgs& args, size_t result, const Index& index) {
  const int64_t dim = known_dim(args, 1, args.tensor(0).rank());
  Index out = index;
  out.insert(out.begin() + std::ptrdiff_t(dim), context.pool().constant(int64_t(result)));
  return out;
}

// ---- split

Result<Types> split_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (self.rank() == 0) return shapes.invalid("a 0-dim tensor cannot be split");
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(2), self.rank()));
  ExprPool& pool = shapes.pool();
  const ExprId size = self.sizes[size_t(dim)], part = args.integer(1);
  if (!shapes.require(pool.ge(part, pool.constant(0)))) return shapes.invalid("the split size is negative");
  const std::optional<bool> nothing = shapes.decided(pool.eq(part, pool.constant(0)));
  if (!nothing) return shapes.needs(pool.eq(part, pool.constant(0)));
  if (*nothing) {
    if (!shapes.require_equal(size, part)) return shapes.invalid("a split size of 0 needs a dimension of size 0");
    return one(self);
  }
  // The number of parts must be known, but not their sizes.
  const int64_t count = std::max<int64_t>(1, shapes.constant(shapes.env().simplify(pool.ceil_div(size, part))));
  Types out(size_t(count), self);
  for (TensorType& type : out) type.sizes[size_t(dim)] = part;
  const ExprId before = pool.mul(part, pool.constant(count - 1));
  out.back().sizes[size_t(dim)] = shapes.env().simplify(pool.sub(size, before));
  return out;
}

Index split_view(ElementContext& context, const OpArgs& args, size_t result, const Index& index) {
  const auto dim = size_t(known_dim(args, 2, args.tensor(0).rank()));
  ExprPool& pool = context.pool();
  Index out = index;
  out[dim] = pool.add(index[dim], pool.mul(args.integer(1), pool.constant(int64_t(result))));
  return out;
}

Result<Types> split_with_sizes_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (self.rank() == 0) return shapes.invalid("a 0-dim tensor cannot be split");
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(2), self.rank()));
  ExprPool& pool = shapes.pool();
  Types out;
  for (const ExprId part : args.integers(1)) {
    if (!shapes.require(pool.ge(part, pool.constant(0)))) return shapes.invalid("a split size is negative");
    out.push_back(self);
    out.back().sizes[size_t(dim)] = part;
  }
  if (!shapes.require_equal(pool.sum(args.integers(1)), self.sizes[size_t(dim)]))
    return shapes.invalid("the split sizes do not add up to the dimension");
  return out;
}

Index split_with_sizes_view(ElementContext& context, const OpArgs& args, size_t result, const Index& index) {
  const auto dim = size_t(known_dim(args, 2, args.tensor(0).rank()));
  const std::vector<ExprId>& parts = args.integers(1);
  Index out = index;
  for (size_t i = 0; i < result; ++i) out[dim] = context.pool().add(out[dim], parts[i]);
  return out;
}

// ---- diagonal, unfold, as_strided

Result<Types> diagonal_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out = args.tensor(0);
  CRESSET_TRY(const int64_t a, shapes.wrap_dim(args.integer(2), out.rank()));
  CRESSET_TRY(const int64_t b, shapes.wrap_dim(args.integer(3), out.rank()));
  if (a == b) return shapes.invalid("the two dimensions are the same");
  ExprPool& pool = shapes.pool();
  const int64_t offset = shapes.constant(args.integer(1));
  const ExprId shift = pool.constant(offset), zero = pool.constant(0);
  const ExprId rows = offset >= 0 ? out.sizes[size_t(a)] : pool.add(out.sizes[size_t(a)], shift);
  const ExprId columns = offset >= 0 ? pool.sub(out.sizes[size_t(b)], shift) : out.sizes[size_t(b)];
  ExprId length = shapes.env().known_equal(rows, columns) ? rows : shapes.env().simplify(pool.min(rows, columns));
  if (const std::optional<bool> any = decide_if_backed(shapes, pool.ge(length, zero)); !any)
    length = pool.max(length, zero);
  else if (!*any)
    length = zero;
  const ExprId stride = pool.add(out.strides[size_t(a)], out.strides[size_t(b)]);
  for (const int64_t dim : {std::max(a, b), std::min(a, b)}) {
    out.sizes.erase(out.sizes.begin() + std::ptrdiff_t(dim));
    out.strides.erase(out.strides.begin() + std::ptrdiff_t(dim));
  }
  out.sizes.push_back(length);
  out.strides.push_back(stride);
  return one(std::move(out));
}

Index diagonal_view(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const size_t rank = args.tensor(0).rank();
  const int64_t a = known_dim(args, 2, rank), b = known_dim(args, 3, rank), offset = args.constant(1);
  ExprPool& pool = context.pool();
  const ExprId along = index.back();
  const ExprId row = offset >= 0 ? along : pool.sub(along, pool.constant(offset));
  const ExprId column = offset >= 0 ? pool.add(along, pool.constant(offset)) : along;
  Index out(index.begin(), index.end() - 1);
  const bool row_first = a < b;
  out.insert(out.begin() + std::ptrdiff_t(std::min(a, b)), row_first ? row : column);
  out.insert(out.begin() + std::ptrdiff_t(std::max(a, b)), row_first ? column : row);
  return out;
}

Result<Types> unfold_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out = args.tensor(0);
  CRESSET_TRY(const int64_t dim, shapes.wrap_dim(args.integer(1), out.rank()));
  ExprPool& pool = shapes.pool();
  const bool scalar = out.rank() == 0;
  const ExprId size = scalar ? pool.constant(1) : out.sizes[size_t(dim)], window = args.integer(2);
  const ExprId stride = scalar ? pool.constant(1) : out.strides[size_t(dim)], step = args.integer(3);
  if (!shapes.require(pool.ge(window, pool.constant(0))) || !shapes.require(pool.le(window, size)))
    return shapes.invalid("the window is larger than the dimension");
  if (!shapes.require(pool.gt(step, pool.constant(0)))) return shapes.invalid("the step must be positive");
  if (!scalar) {
    const ExprId windows = pool.add(pool.floor_div(pool.sub(size, window), step), pool.constant(1));
    out.sizes[size_t(dim)] = shapes.env().simplify(windows);
    out.strides[size_t(dim)] = pool.mul(stride, step);
  }
  out.sizes.push_back(window);
  out.strides.push_back(stride);
  return one(std::move(out));
}

Index unfold_view(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  ExprPool& pool = context.pool();
  Index out(index.begin(), index.end() - 1);
  if (out.empty()) return out;
  const auto dim = size_t(known_dim(args, 1, out.size()));
  out[dim] = pool.add(pool.mul(index[dim], args.integer(3)), index.back());
  return out;
}

Result<Types> as_strided_shape(ShapeContext& shapes, const OpArgs& args) {
  if (args.integers(1).size() != args.integers(2).size()) return shapes.invalid("sizes and strides differ in number");
  return one(with_shape(args.tensor(0), args.integers(1), args.integers(2)));
}

// The dimensions of a dense tensor from the outermost in memory; row-major when the order is unknown.
std::vector<size_t> memory_order(sym::ShapeEnv& env, const TensorType& type) {
  std::vector<size_t> order(type.rank());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<size_t> found;
  std::vector<bool> used(type.rank(), false);
  ExprId expected = env.pool().constant(1);
  for (size_t step = 0; step < type.rank(); ++step) {
    const auto next = std::find_if(order.rbegin(), order.rend(), [&](size_t dim) {
      return !used[dim] && (is_one(env, type.sizes[dim]) || env.known_equal(type.strides[dim], expected));
    });
    if (next == order.rend()) return order;
    used[*next] = true;
    found.push_back(*next);
    expected = env.pool().mul(expected, type.sizes[*next]);
  }
  return {found.rbegin(), found.rend()};
}

// Correct for an argument which fills its memory, in any order of dimensions, and starts at its first element.
Index as_strided_view(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const TensorType& self = args.tensor(0);
  ExprPool& pool = context.pool();
  ExprId position = args.is_none(3) ? pool.constant(0) : args.integer(3);
  for (size_t i = 0; i < index.size(); ++i)
    if (!is_one(context.env(), args.integers(1)[i]))
      position = pool.add(position, pool.mul(index[i], args.integers(2)[i]));
  const std::vector<size_t> order = memory_order(context.env(), self);
  Sizes sizes;
  for (const size_t dim : order) sizes.push_back(self.sizes[dim]);
  const Index parts = delinearize(context.env(), context.env().simplify(position), sizes);
  Index out(parts.size());
  for (size_t k = 0; k < order.size(); ++k) out[order[k]] = parts[k];
  return out;
}

bool step_is_one(const OpArgs& args) { return is_number(args.graph(), args[4], 1); }

constexpr OpDef kViewSliceOps[] = {
    {.schema = "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
               "Tensor(a)",
     .op_class = OpClass::View,
     .shape = slice_shape,
     .view = slice_view,
     .is_no_op = step_is_one},
    {.schema = "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
     .op_class = OpClass::View,
     .shape = select_shape,
     .view = select_view,
     .traits = {.raises = Raises::Position}},
    {.schema = "aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
     .op_class = OpClass::View,
     .shape = unbind_shape,
     .view = unbind_view},
    {.schema = "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
     .op_class = OpClass::View,
     .shape = split_shape,
     .view = split_view},
    {.schema = "aten::unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
     .op_class = OpClass::View,
     .shape = split_shape,
     .view = split_view},
    {.schema = "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
     .op_class = OpClass::View,
     .shape = split_with_sizes_shape,
     .view = split_with_sizes_view},
    {.schema = "aten::unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
     .op_class = OpClass::View,
     .shape = split_with_sizes_shape,
     .view = split_with_sizes_view},
    {.schema = "aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
     .op_class = OpClass::View,
     .shape = diagonal_shape,
     .view = diagonal_view},
    {.schema = "aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
     .op_class = OpClass::View,
     .shape = unfold_shape,
     .view = unfold_view},
    {.schema =
         "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
     .op_class = OpClass::View,
     .shape = as_strided_shape,
     .view = as_strided_view,
     .traits = {.by_memory = true}},
};

}  // namespace

std::span<const OpDef> view_slice_ops() { return kViewSliceOps; }

}  // namespace cresset::ops
