// x[mask] = one value is a choice for each element: no size depends on data.
#pragma once

#include "bridge/capture.h"

namespace cresset::bridge {

// The result of such an index_put; nullopt when the call is another one.
std::optional<graph::ValueId> masked_assignment(Capture& capture, graph::OpId op, const std::vector<graph::Arg>& args);

}  // namespace cresset::bridge
