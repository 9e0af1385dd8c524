// Integers in tensors that follow from sizes alone: torch.div(x.size(1), 2, rounding_mode="floor") is no data.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace cresset::bridge {

// The elements of a value in row-major order: int64, or bool as 0 and 1. nullopt where some element depends on data,
// where they are of other types or too many, or where an operator without a rule here computes them. May guard what an
// operator's meaning depends on (that a divisor is not zero).
std::optional<std::vector<sym::ExprId>> size_values(graph::Graph& graph, graph::ValueId value);

}  // namespace cresset::bridge
