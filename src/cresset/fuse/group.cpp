#include "fuse/group.h"

#include <algorithm>
#include <numeric>

#include "ops/scan.h"

namespace cresset::fuse {
namespace {

using loop::Dim;

bool is_one(const Graph& graph, ExprId size) { return graph.pool().is_const(graph.env().simplify(size), 1); }

// Adds a dimension for each size other than 1, outermost in memory first. Returns the coordinates.
Index add_dims(const Graph& graph, IndexVars& vars, Group& group, const std::vector<ExprId>& sizes,
               const std::vector<size_t>& order, Dim::Kind kind) {
  sym::ShapeEnv& env = graph.env();
  Index index(sizes.size(), graph.pool().constant(0));
  for (size_t d : order) {
    if (is_one(graph, sizes[d])) continue;
    const ExprId extent = env.simplify(sizes[d]);
    group.dims.push_back({vars.at(extent, group.dims.size()), extent, kind});
    index[d] = graph.pool().var(group.dims.back().var);
  }
  return index;
}

std::vector<size_t> memory_order(const Graph& graph, const std::vector<ExprId>& sizes, const Layout& layout) {
  if (auto order = dense_order(graph.env(), sizes, layout.strides)) return *order;
  std::vector<size_t> order(sizes.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = d;
  return order;
}

Group pointwise_group(const Graph& graph, IndexVars& vars, ValueId value, ValueId into, const Layout& layout) {
  Group group;
  const std::vector<ExprId>& sizes = graph.type(value).sizes;
  Index index = add_dims(graph, vars, group, sizes, memory_order(graph, sizes, layout), Dim::Kind::Outer);
  group.roots.push_back({value, std::move(index), into, layout});
  return group;
}

Group reduction_group(const Graph& graph, IndexVars& vars, ValueId value, const ops::OpDef& def, const Layout& layout) {
  Group group;
  const graph::Value& v = graph.value(value);
  const graph::Node& node = graph.node(v.node);
  const ops::OpArgs args(graph, node.args);
  const ops::Reduction reduction = def.reduction(graph, args, v.result);
  const std::vector<ExprId>& sizes = graph.type(value).sizes;
  Index index = add_dims(graph, vars, group, sizes, memory_order(graph, sizes, layout), Dim::Kind::Outer);
  const std::vector<ExprId>& from = args.tensor(0).sizes;
  std::vector<ExprId> folded;
  for (const size_t d : folded_in_order(graph, args.tensor(0), reduction)) folded.push_back(from[d]);
  std::vector<size_t> order(folded.size());
  std::iota(order.begin(), order.end(), size_t{0});
  add_dims(graph, vars, group, folded, order, Dim::Kind::Inner);
  if (!group.has_inner()) {  // all folded dimensions have size 1: a single inner point
    const ExprId one = graph.pool().constant(1);
    group.dims.push_back({vars.at(one, group.dims.size()), one, Dim::Kind::Inner});
  }
  group.roots.push_back({value, std::move(index), value, layout});
  return group;
}

// The dimension of the scan is Inner.
Group scan_group(const Graph& graph, IndexVars& vars, ValueId value, const ops::OpDef& def, const Layout& layout) {
  Group group;
  const graph::Node& node = graph.node(graph.value(value).node);
  const auto dim = static_cast<size_t>(def.reduction(graph, ops::OpArgs(graph, node.args), 0).dims[0]);
  std::vector<ExprId> sizes = graph.type(value).sizes;
  const std::vector<size_t> order = memory_order(graph, sizes, layout);
  const ExprId one = graph.pool().constant(1), extent = sizes.empty() ? one : graph.env().simplify(sizes[dim]);
  if (!sizes.empty()) sizes[dim] = one;
  Index index = add_dims(graph, vars, group, sizes, order, Dim::Kind::Outer);
  group.dims.push_back({vars.at(extent, group.dims.size()), extent, Dim::Kind::Inner});
  if (!index.empty()) index[dim] = graph.pool().var(group.dims.back().var);
  group.roots.push_back({value, std::move(index), value, layout});
  return group;
}

}  // namespace

Group group_of(const Graph& graph, IndexVars& vars, ValueId value, const Layout& layout) {
  const ops::OpDef* def = native(graph, graph.value(value).node);
  CRESSET_CHECK(def != nullptr, "a kernel computes a native operator");
  if (def->op_class == ops::OpClass::Reduction) return reduction_group(graph, vars, value, *def, layout);
  if (ops::is_scan(*def)) return scan_group(graph, vars, value, *def, layout);
  return pointwise_group(graph, vars, value, value, layout);
}

std::vector<size_t> folded_in_order(const Graph& graph, const TensorType& operand, const ops::Reduction& reduction) {
  std::vector<size_t> order;
  if (operand.sizes.empty()) return order;  // a scalar reduced over "dim 0"
  for (const int64_t d : reduction.dims) order.push_back(static_cast<size_t>(d));
  if (reduction.combine == loop::Combine::ArgMax || reduction.combine == loop::Combine::ArgMin) return order;
  sym::ShapeEnv& env = graph.env();
  const auto wider = [&](size_t a, size_t b) {
    const ExprId x = operand.strides[a], y = operand.strides[b];
    return x != y && env.known_true(env.pool().ge(x, y)) && !env.known_true(env.pool().ge(y, x));
  };
  for (size_t i = 1; i < order.size(); ++i)
    for (size_t k = i; k > 0 && wider(order[k], order[k - 1]); --k) std::swap(order[k], order[k - 1]);
  return order;
}

Device device_of(const Graph& graph, const Group& group) { return graph.type(group.roots.front().value).device; }

std::vector<ConcatPart> concat_parts(const Graph& graph, const graph::Node& node) {
  const ops::OpArgs args(graph, node.args);
  const size_t rank = graph.type(node.results[0]).rank();
  int64_t dim = args.constant(1);
  if (dim < 0) dim += static_cast<int64_t>(rank);
  std::vector<ConcatPart> parts;
  ExprId start = graph.pool().constant(0);
  for (const graph::OptionalValue& value : args.values(0)) {
    const std::vector<ExprId>& sizes = graph.type(*value).sizes;
    if (sizes.size() != rank) continue;  // ATen ignores empty 1-d tensors in a concatenation
    parts.push_back({*value, static_cast<size_t>(dim), start});
    start = graph.pool().add(start, sizes[static_cast<size_t>(dim)]);
  }
  return parts;
}

Group window_group(const Graph& graph, IndexVars& vars, const ConcatPart& part, ValueId whole, const Layout& layout) {
  sym::ExprPool& pool = graph.pool();
  const Layout window{layout.strides, pool.add(layout.offset, pool.mul(part.start, layout.strides[part.dim]))};
  return pointwise_group(graph, vars, part.value, whole, window);
}

Group section_group(const Graph& graph, IndexVars& vars, ValueId value, const ConcatPart& part, const Layout& layout) {
  Group group;
  std::vector<ExprId> sizes = graph.type(value).sizes;
  const std::vector<size_t> order = memory_order(graph, sizes, layout);
  sizes[part.dim] = graph.type(part.value).sizes[part.dim];
  Index index = add_dims(graph, vars, group, sizes, order, Dim::Kind::Outer);
  index[part.dim] = graph.env().simplify(graph.pool().add(index[part.dim], part.start));
  group.roots.push_back({value, std::move(index), value, layout});
  return group;
}

}  // namespace cresset::fuse
