// Two groups over one domain: the candidates for fusing them.
#pragma once

#include <optional>

#include "fuse/kernel_builder.h"

namespace cresset::fuse {

// Both groups' roots over a common domain, or nullopt. Dimensions are matched in order, splitting and merging extents
// that are provably equal: pointwise over D agrees with a reduction (O | I) when D is O ++ I or O.
std::optional<Group> align_in_order(sym::ShapeEnv& env, IndexVars& vars, const Group& a, const Group& b);

// For domains that are permutations of each other: `consumer` asks for `value`, a root of `producer`, at one index; the
// correspondence of the two domains is read off it. One of the two must be without Inner dimensions; it moves to the
// other's domain.
std::optional<Group> align_through(const Build& build, const Group& producer, const Group& consumer, ValueId value);

}  // namespace cresset::fuse
