// Decisions for sizes other than 0 and 1. The sizes 0 and 1 decide about broadcasting and about strides on which no
// element depends. Some operators are also right with the answer for a general size. Taking this answer avoids a guard
// that would separate a first call at batch 1 from all later calls.
#pragma once

#include <optional>

#include "sym/shape_env.h"

namespace cresset::sym {

// Returns whether `condition` is proved or refuted for every value >= 2 of its symbols. If this is undecided, quotients
// in the condition are also taken as >= 2, as far as their ranges allow. No guard is added. Of the facts about symbols,
// only equalities are used.
std::optional<bool> known_for_general_sizes(ShapeEnv& env, ExprId condition);

}  // namespace cresset::sym
