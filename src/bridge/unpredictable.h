// Operators whose sizes were predicted wrongly (generic_rule.h).
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

namespace cresset::bridge {

// A prediction for this operator was wrong: from now on the compiled function at work on this thread pins its sizes.
void note_unpredictable(std::string_view op);
// Whose operators these are, of this thread: each compiled function has its own. nullptr: nothing is known. Returns
// what was there before.
std::unordered_set<std::string>* exchange_unpredictable(std::unordered_set<std::string>* of);

}  // namespace cresset::bridge
