// How much has been asked of sizes: while it is the same, so is what is known of them.
#pragma once

#include "sym/shape_env.h"

namespace cresset::sym {

struct Asked {
  size_t guards, assertions;
  bool operator==(const Asked&) const = default;
};

inline Asked asked(const ShapeEnv& env) { return {env.guards().size(), env.assertions().size()}; }

}  // namespace cresset::sym
