// Alignment of two groups over a common domain. The results are the candidates for fusion.
#pragma once

#include <optional>

#include "fuse/kernel_builder.h"

namespace cresset::fuse {

// Returns both groups' roots over a common domain, or nullopt. Dimensions are matched in order. Provably equal extents
// are split and merged: pointwise over D agrees with a reduction (O | I) when D is O ++ I or O.
std::optional<Group> align_in_order(sym::ShapeEnv& env, IndexVars& vars, const Group& a, const Group& b);

// The same for domains which are permutations of each other. `consumer` reads `value`, a root of `producer`, at a
// single index, and this index gives the correspondence of the domains. One of the groups must have no Inner
// dimensions; it moves to the domain of the other group.
std::optional<Group> align_through(const Build& build, const Group& producer, const Group& consumer, ValueId value);

}  // namespace cresset::fuse
