// Where a value's elements lie in memory: strides and offset, in elements. Kept apart from TensorType::strides, which
// are what eager would have.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace cresset::fuse {

using graph::Graph;
using graph::TensorType;
using graph::ValueId;
using sym::ExprId;
using Index = std::vector<ExprId>;

struct Layout {
  std::vector<ExprId> strides;
  ExprId offset;
};

// The dimensions from outermost to innermost such that memory is dense in that order; provable size-1 dimensions come
// first. nullopt when density cannot be proved.
std::optional<std::vector<size_t>> dense_order(sym::ShapeEnv& env, const std::vector<ExprId>& sizes,
                                               const std::vector<ExprId>& strides);

// The layout a value gets when it has memory of its own: eager's strides when dense, else contiguous.
Layout own_layout(const Graph& graph, const TensorType& type);

// offset + sum(index * stride), simplified.
ExprId address(sym::ShapeEnv& env, const Layout& layout, const Index& index);

// Elements from element 0 to the last one, plus one. For a dense layout the number of elements; 0 for an empty tensor
// is not required: callers only allocate by it.
ExprId span(sym::ShapeEnv& env, const std::vector<ExprId>& sizes, const Layout& layout);

bool equal_strides(sym::ShapeEnv& env, const std::vector<ExprId>& sizes, const std::vector<ExprId>& a,
                   const std::vector<ExprId>& b);  // up to size-1 dimensions; proved

}  // namespace cresset::fuse
