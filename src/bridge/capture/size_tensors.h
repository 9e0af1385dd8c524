// Integers in tensors which follow from sizes and literals alone. torch.div(x.size(1), 2, rounding_mode="floor") does
// not depend on data, nor does torch.tensor(3).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace cresset::bridge {

// Maps a constant of a graph to its tensor.
using ConstantOf = std::function<const at::Tensor&(const graph::Value&)>;

// The elements of a value in row-major order: int64, or bool as 0 and 1. nullopt: an element depends on data, the dtype
// is different, there are too many elements, or an operator without a rule computes them. May guard conditions of an
// operator's meaning (a divisor is not zero).
std::optional<std::vector<sym::ExprId>> size_values(graph::Graph& graph, graph::ValueId value,
                                                    const ConstantOf& constant);

}  // namespace cresset::bridge
