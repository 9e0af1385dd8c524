// What operators do beside giving results.
#pragma once

#include "graph/graph.h"

namespace cresset::ops {

// Operators that may be neither dropped nor merged, and keep their order among each other: random numbers, assertions,
// operators of other libraries.
bool has_effects(const graph::Node& node);

// Operators whose results depend on where their arguments' elements lie: random numbers are drawn in the order of
// memory, and what operators of other libraries do with strides is theirs to know.
bool follows_memory_order(const graph::Node& node);

}  // namespace cresset::ops
