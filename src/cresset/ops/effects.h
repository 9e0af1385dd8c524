// Side effects of operators.
#pragma once

#include "graph/graph.h"

namespace cresset::ops {

// Whether an operator must be neither dropped nor merged, and must keep its order among other operators with effects:
// random numbers, assertions, operators of other libraries.
bool has_effects(const graph::Node& node);

// Whether the node draws random numbers, and so gives different results when it runs again. An operator with dropout of
// probability 0 draws nothing.
bool draws(const graph::Node& node);

// Whether an operator's results depend on the positions of its arguments' elements in memory. Random numbers are drawn
// in memory order, as_strided refers to memory, and operators of other libraries may use strides.
bool follows_memory_order(const graph::Node& node);

}  // namespace cresset::ops
