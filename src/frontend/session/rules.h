// Tables of trace rules (operator_rules.cpp, call_rules.cpp, ...): ordered member functions of a struct of rules.
#pragma once

#include <optional>

namespace cresset::frontend {

// The action of the first rule which gives one; `otherwise` where none does. A rule may only note something.
template <class Rules, class Action, size_t count>
Action first_action(const Rules& rules, std::optional<Action> (Rules::* const (&table)[count])() const,
                    Action otherwise) {
  for (const auto rule : table)
    if (const std::optional<Action> action = (rules.*rule)()) return *action;
  return otherwise;
}

}  // namespace cresset::frontend
