// The positions of a value's elements in memory: strides and offset, in elements. TensorType::strides are different:
// they are the strides of eager mode.
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

// Returns the dimensions from outermost to innermost in an order in which memory is dense. Provable size-1 dimensions
// come first. Returns nullopt when density cannot be proved.
std::optional<std::vector<size_t>> dense_order(sym::ShapeEnv& env, const std::vector<ExprId>& sizes,
                                               const std::vector<ExprId>& strides);

// Returns the layout of a value with memory of its own: eager mode's strides when dense, else contiguous.
Layout own_layout(const Graph& graph, const TensorType& type);

// offset + sum(index * stride), simplified.
ExprId address(sym::ShapeEnv& env, const Layout& layout, const Index& index);

// Returns the distance from element 0 to the last element, plus one. For a dense layout this is the number of elements.
// The result for an empty tensor need not be 0, since callers only allocate memory of this size.
ExprId span(sym::ShapeEnv& env, const std::vector<ExprId>& sizes, const Layout& layout);

bool equal_strides(sym::ShapeEnv& env, const std::vector<ExprId>& sizes, const std::vector<ExprId>& a,
                   const std::vector<ExprId>& b);  // up to size-1 dimensions; proved

}  // namespace cresset::fuse
