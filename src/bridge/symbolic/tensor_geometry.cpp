#include "bridge/symbolic/tensor_geometry.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "bridge/symbolic/view_or_copy.h"
#include "sym/general_sizes.h"

namespace cresset::bridge::geometry {
namespace {

// Dimensions which are not known to be 1, innermost first. Hints only choose the order which is tried first. Among
// dimensions with equal strides now, dimensions of size 1 lie inside the others.
std::vector<size_t> likely_order(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides) {
  std::vector<size_t> order;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!env.pool().is_const(env.simplify(sizes[d]), 1)) order.push_back(d);
  const auto place = [&](size_t d) {
    return std::tuple(env.hint_or(strides[d], 1 << 30), env.hint_or(sizes[d], 2) != 1, -static_cast<int64_t>(d));
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return place(a) < place(b); });
  return order;
}

// Whether the tensor is dense with dimensions in `order`, innermost first.
bool dense_in_order(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides, const std::vector<size_t>& order) {
  sym::ExprPool& pool = env.pool();
  sym::ExprId expected = pool.constant(1);
  for (const size_t d : order) {
    if (pool.is_const(env.simplify(sizes[d]), 1)) continue;
    if (!env.known_equal(strides[d], expected)) return false;
    expected = pool.mul(expected, sizes[d]);
  }
  return true;
}

std::vector<size_t> channels_last_order(size_t rank) {
  std::vector<size_t> order{1};
  for (size_t d = rank - 1; d >= 2; --d) order.push_back(d);
  order.push_back(0);
  return order;
}

}  // namespace

bool is_contiguous(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides) {
  const auto is_empty = [&](sym::ExprId size) { return env.pool().is_const(env.simplify(size), 0); };
  if (std::any_of(sizes.begin(), sizes.end(), is_empty)) return true;
  std::vector<size_t> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), 0);
  return dense_in_order(env, sizes, strides, order);
}

namespace {

// A tensor without elements is contiguous whatever its strides are, and so an operator returns it as it is.
void answer_has_elements(sym::ShapeEnv& env, const Exprs& sizes) {
  sym::ExprPool& pool = env.pool();
  for (const sym::ExprId size : sizes)
    if (!pool.is_const(env.simplify(size))) ViewOrCopy::answered(pool.ne(size, pool.constant(0)), true);
}

// Whether dimensions lie in `order`, innermost first, without gaps.
bool decide_order(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides, const std::vector<size_t>& order,
                  const std::function<sym::Reason()>& why) {
  sym::ExprPool& pool = env.pool();
  sym::ExprId expected = pool.constant(1);
  for (const size_t d : order) {
    if (pool.is_const(env.simplify(sizes[d]), 1)) continue;
    const sym::ExprId differs = pool.ne(strides[d], expected);
    const sym::ExprId has_gap = pool.logical_and(pool.ne(sizes[d], pool.constant(1)), differs);
    if (sym::known_for_general_sizes(env, differs) == true) {
      ViewOrCopy::answered(has_gap, true);
      return false;
    }
    if (env.hint(differs) == 1 && env.hint(sizes[d]) != 1) {  // the answer at a size of 1 is told, not guarded
      env.evaluate(differs, why);
      ViewOrCopy::answered(has_gap, true);
      return false;
    }
    if (env.evaluate(has_gap, why).value_or(true)) return false;
    expected = pool.mul(expected, sizes[d]);
  }
  return true;
}

}  // namespace

bool decide_contiguous(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides,
                       const std::function<sym::Reason()>& why) {
  if (is_contiguous(env, sizes, strides)) return true;
  std::vector<size_t> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), 0);
  answer_has_elements(env, sizes);
  return decide_order(env, sizes, strides, order, why);
}

bool decide_channels_last(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides, size_t rank,
                          const std::function<sym::Reason()>& why) {
  if (sizes.size() != rank) return false;
  return is_channels_last(env, sizes, strides, rank) ||
         decide_order(env, sizes, strides, channels_last_order(rank), why);
}

bool is_channels_last(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides, size_t rank) {
  return sizes.size() == rank && dense_in_order(env, sizes, strides, channels_last_order(rank));
}

bool decide_format(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides, c10::MemoryFormat format,
                   const std::function<sym::Reason()>& why) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), 0);
  sym::ExprPool& pool = env.pool();
  if (format != c10::MemoryFormat::Contiguous) {
    order = channels_last_order(sizes.size());
  } else {  // a tensor without elements is contiguous
    for (const sym::ExprId size : sizes)
      if (env.hint(size) == 0) return env.evaluate(pool.eq(size, pool.constant(0)), why).value_or(false);
  }
  sym::ExprId expected = pool.constant(1);
  for (const size_t d : order) {
    const sym::ExprId fits = pool.logical_or(pool.eq(sizes[d], pool.constant(1)), pool.eq(strides[d], expected));
    if (!env.evaluate(fits, why).value_or(false)) return false;
    expected = pool.mul(expected, sizes[d]);
  }
  return true;
}

namespace {

// The condition of strides in channels-last order, as ATen compares them.
sym::ExprId grow_like_channels_last(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides) {
  sym::ExprPool& pool = env.pool();
  sym::ExprId all = pool.ne(strides[1], pool.constant(0)), least = pool.constant(0);
  for (const size_t d : channels_last_order(sizes.size())) {
    all = pool.logical_and(all, pool.logical_and(pool.ne(sizes[d], pool.constant(0)), pool.ge(strides[d], least)));
    // Ambiguous between the two formats: ATen calls it contiguous.
    if (d == 0) all = pool.logical_and(all, pool.ne(least, strides[1]));
    least = pool.mul(strides[d], sizes[d]);
  }
  return all;
}

}  // namespace

bool is_channels_last_like(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides, size_t rank) {
  if (sizes.size() != rank) return false;
  sym::ExprPool& pool = env.pool();
  const auto no = [&] {
    if (ViewOrCopy::current() != nullptr) ViewOrCopy::answered(grow_like_channels_last(env, sizes, strides), false);
    return false;
  };
  if (env.known_equal(strides[1], pool.constant(0))) return false;
  sym::ExprId least = pool.constant(0);
  for (const size_t d : channels_last_order(rank)) {
    if (pool.is_const(env.simplify(sizes[d]), 0)) return false;
    if (!env.known_true(pool.ge(strides[d], least))) return no();
    // Ambiguous between the two formats: ATen calls it contiguous.
    if (d == 0 && env.known_equal(least, strides[1])) return no();
    least = pool.is_const(env.simplify(sizes[d]), 1) ? strides[d] : pool.mul(strides[d], sizes[d]);
  }
  if (ViewOrCopy::current() != nullptr) ViewOrCopy::answered(grow_like_channels_last(env, sizes, strides), true);
  return true;
}

bool is_non_overlapping_and_dense(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides) {
  return dense_in_order(env, sizes, strides, likely_order(env, sizes, strides));
}

bool decide_non_overlapping(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides,
                            const std::function<sym::Reason()>& why) {
  sym::ExprPool& pool = env.pool();
  sym::ExprId reached = pool.constant(0);
  for (const size_t d : likely_order(env, sizes, strides)) {
    if (!env.evaluate(pool.gt(strides[d], reached), why).value_or(false)) {
      // The stride of a dimension of one element says nothing.
      if (!env.evaluate(pool.eq(sizes[d], pool.constant(1)), why).value_or(false)) return false;
      continue;
    }
    reached = pool.add(reached, pool.mul(strides[d], pool.sub(sizes[d], pool.constant(1))));
  }
  return true;
}

sym::ExprId numel(sym::ShapeEnv& env, const Exprs& sizes) {
  return sizes.empty() ? env.pool().constant(1) : env.pool().product(sizes);
}

}  // namespace cresset::bridge::geometry
