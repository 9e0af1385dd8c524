// The bf16 and f16 values which are rounded although a kernel holds them in f32.
#pragma once

#include <unordered_set>

#include "graph/graph.h"

namespace cresset::fuse {

using RoundedValues = std::unordered_set<graph::ValueId>;

// Returns the values on which a decision depends: the arguments of comparisons, conversions to integers and roundings
// to whole numbers, and all values which lead to them. Eager mode rounds these values. With additional digits a
// decision would differ: of two values equal in eager mode, one could be greater. All other values keep their digits
// until they are stored.
RoundedValues values_that_decide(const graph::Graph& graph);

}  // namespace cresset::fuse
