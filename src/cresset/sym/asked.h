// Counts of guards and assertions. While both counts are unchanged, the facts about sizes are unchanged too.
#pragma once

#include "sym/shape_env.h"

namespace cresset::sym {

struct Asked {
  size_t guards, assertions;
  bool operator==(const Asked&) const = default;
};

inline Asked asked(const ShapeEnv& env) { return {env.guards().size(), env.assertions().size()}; }

}  // namespace cresset::sym
