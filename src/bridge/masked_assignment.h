// Assigning under a mask is a choice for each element, with which no size depends on data: x[mask] = y, and x[mask] +=
// y, where y is a number, or is computed element by element of tensors under the same mask: x[mask] = x[mask] * z[mask]
// + 1. Derivatives of such programs are of this kind, too.
#pragma once

#include "bridge/capture.h"

namespace cresset::bridge {

// The result of such an index_put; nullopt when the call is another one.
std::optional<graph::ValueId> masked_assignment(Capture& capture, graph::OpId op, const std::vector<graph::Arg>& args);

// Whether both are computed in the same way of the same values.
bool same_computation(const graph::Graph& graph, graph::ValueId a, graph::ValueId b);

}  // namespace cresset::bridge
