// Why: the fewest recorded guards behind a conclusion, in the user's terms.
#pragma once

#include <string>
#include <vector>

#include "sym/shape_env.h"

namespace cresset::sym {

// The operator in the reason of a guard that is there because a number was written out.
inline constexpr const char* kTextOfNumber = "the text of a number";

// The fewest of the recorded guards from which `condition` follows (none can be left out), in the order in which they
// were asked. Found by leaving out one after another. Empty when it follows from ranges alone, or does not follow.
std::vector<GuardFact> causes(ShapeEnv& env, ExprId condition);

// Symbols by where they come from, for texts: "x.size(0)" instead of "s0".
VarNames source_names(const ShapeEnv& env);

// "x.size(0) == 8, asked by aten::view at model.py:7 in forward".
std::string describe(const ShapeEnv& env, const GuardFact& guard);

// A size that no symbol stands for: by a mark, or since none was wanted.
struct FixedSize {
  std::string source;
  int64_t value;
};

// For each marked dimension that would have to be static: the value, the guards that force it, fixed sizes of that
// value, which may be where it comes from, and the weakest mark that would be accepted. Empty when there is none.
std::string explain_violations(ShapeEnv& env, const std::vector<FixedSize>& fixed = {});

// For each dimension that was suggested to vary and is pinned all the same: a line of the same kind.
std::vector<std::string> dropped_suggestions(ShapeEnv& env);

// Why `guard`, one of those that a call checks, does not hold: what was expected, `values` as found, and the causes
// when they are not the guard itself.
std::string explain_failure(ShapeEnv& env, const GuardFact& guard, const std::unordered_map<VarId, int64_t>& values);

}  // namespace cresset::sym
