// Integers in tensors which follow from sizes and literals alone. torch.div(x.size(1), 2, rounding_mode="floor") does
// not depend on data, nor does torch.tensor(3).
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace cresset::bridge {

// Operators which return the elements of their first argument, in order.
inline constexpr std::array<std::string_view, 14> kHandOn{
    "aten::clone",    "aten::alias",       "aten::detach",       "aten::lift_fresh",     "aten::lift_fresh_copy",
    "aten::_to_copy", "aten::view",        "aten::_unsafe_view", "aten::_reshape_alias", "aten::reshape",
    "aten::squeeze",  "aten::squeeze.dim", "aten::squeeze.dims", "aten::unsqueeze"};

// Maps a constant of a graph to its tensor.
using ConstantOf = std::function<const at::Tensor&(const graph::Value&)>;

// The elements of a value in row-major order: int64, or bool as 0 and 1. nullopt: an element depends on data, the dtype
// is different, there are too many elements, or an operator without a rule computes them. May guard conditions of an
// operator's meaning (a divisor is not zero).
std::optional<std::vector<sym::ExprId>> size_values(graph::Graph& graph, graph::ValueId value,
                                                    const ConstantOf& constant);

}  // namespace cresset::bridge
