// An assignment under a mask is a select for each element, without data-dependent sizes. Supported are x[mask] = y and
// x[mask] += y. Here y is a number, or an elementwise function of tensors under the same mask, as in x[mask] = x[mask]
// * z[mask] + 1. Derivatives of these programs have the same form.
#pragma once

#include "bridge/capture/capture.h"

namespace cresset::bridge {

// The result of an index_put of this kind; nullopt for any other call.
std::optional<graph::ValueId> masked_assignment(Capture& capture, graph::OpId op, const std::vector<graph::Arg>& args);

// Whether the two values are computed in the same way from the same values.
bool same_computation(const graph::Graph& graph, graph::ValueId a, graph::ValueId b);

}  // namespace cresset::bridge
