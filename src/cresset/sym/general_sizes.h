// What holds when no size is 0 or 1. Those two decide about broadcasting and about strides that no element depends on;
// where an operator is right with the answer of a general size, taking it spares a guard that would tell a first call
// at batch 1 apart from all others.
#pragma once

#include <optional>

#include "sym/shape_env.h"

namespace cresset::sym {

// Whether `condition` is proved or refuted for every value >= 2 of its symbols and, if that does not tell, of the
// quotients in it (as far as their ranges allow one).
// Adds no guard; what was learned about symbols beyond their equalities is not used.
std::optional<bool> known_for_general_sizes(ShapeEnv& env, ExprId condition);

}  // namespace cresset::sym
