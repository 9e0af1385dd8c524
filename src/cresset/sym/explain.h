// Explanations: the fewest recorded guards behind a conclusion, in the user's terms.
#pragma once

#include <string>
#include <vector>

#include "sym/shape_env.h"

namespace cresset::sym {

// The operator in the reason of a guard whose cause is the string of a number.
inline constexpr const char* kTextOfNumber = "the text of a number";

// Returns a minimal list of recorded guards which imply `condition`, in the order in which the guards were recorded. No
// guard can be removed from the list. Guards are removed one by one to find it. The list is empty when ranges alone
// imply `condition`, and when the condition is not implied at all.
std::vector<SizeGuard> causes(ShapeEnv& env, ExprId condition);

// Names symbols by their sources for messages: "x.size(0)" instead of "s0".
VarNames source_names(const ShapeEnv& env);

// Formats a guard: "x.size(0) == 8, asked by aten::view at model.py:7 in forward".
std::string describe(const ShapeEnv& env, const SizeGuard& guard);

// A size without a symbol. Either a mark made it static, or no symbol was requested.
struct FixedSize {
  std::string source;
  int64_t value;
};

// Describes each marked dimension which would have to be static. The message names the value, the guards which force
// it, and the weakest mark which would be accepted. It also names fixed sizes of the same value as possible sources.
// The message is empty when there is no violation.
std::string explain_violations(ShapeEnv& env, const std::vector<FixedSize>& fixed = {});

// Returns a line for each dimension that the user suggested as dynamic and that guards specialize all the same.
std::vector<std::string> dropped_suggestions(ShapeEnv& env);

// Explains why `guard`, a guard checked at calls, does not hold. The message has the expected condition, the actual
// `values`, and the causes unless the guard itself is the only cause.
std::string explain_failure(ShapeEnv& env, const SizeGuard& guard, const std::unordered_map<VarId, int64_t>& values);

}  // namespace cresset::sym
