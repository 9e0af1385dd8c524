// Operators whose sizes were predicted wrongly (meta_shape_rule.h).
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

namespace cresset::bridge {

// A prediction for this operator was wrong: from now on this thread's compiled function specializes its sizes.
void note_unpredictable(std::string_view op);
// Sets this thread's collection of operators: each compiled function has its own. nullptr: nothing is known. Returns
// the previous collection.
std::unordered_set<std::string>* exchange_unpredictable(std::unordered_set<std::string>* of);

}  // namespace cresset::bridge
