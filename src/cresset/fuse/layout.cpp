#include "fuse/layout.h"

#include <algorithm>

namespace cresset::fuse {

std::optional<std::vector<size_t>> dense_order(sym::ShapeEnv& env, const std::vector<ExprId>& sizes,
                                               const std::vector<ExprId>& strides) {
  sym::ExprPool& pool = env.pool();
  std::vector<size_t> order, left;
  for (size_t d = 0; d < sizes.size(); ++d) (pool.is_const(env.simplify(sizes[d]), 1) ? order : left).push_back(d);
  std::vector<size_t> inner_first;
  ExprId expected = pool.constant(1);
  while (!left.empty()) {
    auto it = std::find_if(left.rbegin(), left.rend(), [&](size_t d) { return env.known_equal(strides[d], expected); });
    if (it == left.rend()) return std::nullopt;
    expected = pool.mul(expected, sizes[*it]);
    inner_first.push_back(*it);
    left.erase(std::next(it).base());
  }
  order.insert(order.end(), inner_first.rbegin(), inner_first.rend());
  return order;
}

Layout own_layout(const Graph& graph, const TensorType& type) {
  sym::ExprPool& pool = graph.pool();
  Layout layout{type.strides, pool.constant(0)};
  if (!dense_order(graph.env(), type.sizes, type.strides)) layout.strides = graph::contiguous_strides(pool, type.sizes);
  return layout;
}

ExprId address(sym::ShapeEnv& env, const Layout& layout, const Index& index) {
  sym::ExprPool& pool = env.pool();
  ExprId sum = layout.offset;
  for (size_t d = 0; d < index.size(); ++d) sum = pool.add(sum, pool.mul(index[d], layout.strides[d]));
  return env.simplify_address(sum);
}

ExprId span(sym::ShapeEnv& env, const std::vector<ExprId>& sizes, const Layout& layout) {
  sym::ExprPool& pool = env.pool();
  if (dense_order(env, sizes, layout.strides)) return pool.add(layout.offset, graph::numel(pool, sizes));
  ExprId last = layout.offset;
  for (size_t d = 0; d < sizes.size(); ++d)
    last = pool.add(last, pool.mul(pool.sub(sizes[d], pool.constant(1)), layout.strides[d]));
  return pool.max(pool.add(last, pool.constant(1)), pool.constant(0));
}

bool equal_strides(sym::ShapeEnv& env, const std::vector<ExprId>& sizes, const std::vector<ExprId>& a,
                   const std::vector<ExprId>& b) {
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!env.known_equal(a[d], b[d]) && !env.pool().is_const(env.simplify(sizes[d]), 1)) return false;
  return true;
}

}  // namespace cresset::fuse
