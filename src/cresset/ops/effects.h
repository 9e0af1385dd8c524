// What operators do beside giving results.
#pragma once

#include "graph/graph.h"

namespace cresset::ops {

// Operators that may be neither dropped nor merged, and keep their order among each other: random numbers, assertions,
// operators of other libraries.
bool has_effects(const graph::Node& node);

// Of them, those that give another result when they are run again.
bool draws(const graph::Node& node);

// Operators whose results depend on where their arguments' elements lie: random numbers are drawn in the order of
// memory, as_strided speaks of it, and what operators of other libraries do with strides is theirs to know.
bool follows_memory_order(const graph::Node& node);

}  // namespace cresset::ops
