// What operators do beside giving results.
#pragma once

#include "graph/graph.h"

namespace cresset::ops {

// Operators that may be neither dropped nor merged, and keep their order among each other: random numbers, assertions,
// operators of other libraries.
bool has_effects(const graph::Node& node);

}  // namespace cresset::ops
