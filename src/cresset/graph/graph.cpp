#include "graph/graph.h"

#include <algorithm>

#include "base/check.h"

namespace cresset::graph {

ValueId Graph::add_input(TensorType type, std::string name) {
  const ValueId id{static_cast<uint32_t>(values_.size())};
  const auto position = static_cast<uint32_t>(inputs.size());
  values_.push_back({std::move(type), NodeId{}, position, Value::Kind::Input, std::move(name)});
  inputs.push_back(id);
  return id;
}

ValueId Graph::add_constant(TensorType type, std::string name) {
  const ValueId id{static_cast<uint32_t>(values_.size())};
  const auto position = static_cast<uint32_t>(constants.size());
  values_.push_back({std::move(type), NodeId{}, position, Value::Kind::Constant, std::move(name)});
  constants.push_back(id);
  return id;
}

NodeId Graph::add_node(OpId op, std::vector<Arg> args, std::vector<TensorType> results) {
  const NodeId id{static_cast<uint32_t>(nodes_.size())};
  Node& node = nodes_.emplace_back(Node{op, std::move(args), {}, current_location});
  node.results.reserve(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    node.results.push_back(ValueId{static_cast<uint32_t>(values_.size())});
    values_.push_back({std::move(results[i]), id, static_cast<uint32_t>(i), Value::Kind::Result, {}});
  }
  order.push_back(id);
  return id;
}

uint32_t Graph::add_location(std::string location) {
  if (locations.back() != location) locations.push_back(std::move(location));
  return static_cast<uint32_t>(locations.size() - 1);
}

// The stride of a dimension of size 1 is ignored, if the size is proved to be 1. A tensor without elements is
// contiguous.
bool is_contiguous(sym::ShapeEnv& env, const TensorType& type) {
  sym::ExprPool& pool = env.pool();
  if (std::any_of(type.sizes.begin(), type.sizes.end(), [&](ExprId size) { return pool.is_const(size, 0); }))
    return true;
  ExprId expected = pool.constant(1);
  for (size_t i = type.rank(); i-- > 0;) {
    const ExprId size = type.sizes[i];
    if (type.strides[i] != expected) {
      if (pool.is_const(size, 1) || env.known_equal(size, pool.constant(1))) continue;
      if (!env.known_equal(type.strides[i], expected)) return false;
    }
    if (i > 0) expected = pool.mul(expected, size);
  }
  return true;
}

std::vector<ExprId> contiguous_strides(sym::ExprPool& pool, const std::vector<ExprId>& sizes) {
  std::vector<ExprId> strides(sizes.size());
  ExprId next = pool.constant(1);
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = next;
    if (i > 0 && !pool.is_const(sizes[i], 0)) next = pool.mul(next, sizes[i]);  // ATen counts an empty dimension as 1
  }
  return strides;
}

ExprId numel(sym::ExprPool& pool, const std::vector<ExprId>& sizes) { return pool.product(sizes); }

}  // namespace cresset::graph
