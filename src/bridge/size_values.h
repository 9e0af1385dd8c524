// Integers in tensors that follow from sizes and literals alone: torch.div(x.size(1), 2, rounding_mode="floor") is no
// data, torch.tensor(3) neither.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace cresset::bridge {

// Operators that hand the elements of their first argument on, in their order.
inline constexpr std::array<std::string_view, 14> kHandOn{
    "aten::clone",    "aten::alias",       "aten::detach",       "aten::lift_fresh",     "aten::lift_fresh_copy",
    "aten::_to_copy", "aten::view",        "aten::_unsafe_view", "aten::_reshape_alias", "aten::reshape",
    "aten::squeeze",  "aten::squeeze.dim", "aten::squeeze.dims", "aten::unsqueeze"};

// The tensor behind a constant of a graph.
using ConstantOf = std::function<const at::Tensor&(const graph::Value&)>;

// The elements of a value in row-major order: int64, or bool as 0 and 1. nullopt where some element depends on data,
// where they are of other types or too many, or where an operator without a rule here computes them. May guard what an
// operator's meaning depends on (that a divisor is not zero).
std::optional<std::vector<sym::ExprId>> size_values(graph::Graph& graph, graph::ValueId value,
                                                    const ConstantOf& constant);

}  // namespace cresset::bridge
