// Tier 2 of shape inference: operators without a native rule.
#pragma once

#include <vector>

#include "bridge/capture.h"

namespace cresset::bridge {

// Result types of an operator from its meta kernel. The sizes it looks at are pinned by guards. An exception that the
// meta kernel raises is eager's own and passes through. Aborts the capture when the operator has no meta kernel.
std::vector<graph::TensorType> generic_rule(Capture& capture, graph::OpId op, const std::vector<graph::Arg>& args);

}  // namespace cresset::bridge
