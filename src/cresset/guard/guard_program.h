// The guards of a compiled program in executable form: a size program whose outputs are all non-zero when the program
// may run. The check and its explanation read the same instructions, so no second copy of a guard exists.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sym/shape_env.h"
#include "sym/size_program.h"

namespace cresset::guard {

class GuardProgram {
 public:
  // `guards`: ShapeEnv::minimized_guards(). `slot_of`: the slot of each symbol's value at a call. Every symbol of a
  // guard has a slot.
  static GuardProgram compile(const sym::ExprPool& pool, std::span<const sym::SizeGuard> guards,
                              const std::unordered_map<sym::VarId, uint32_t>& slot_of);

  size_t size() const { return reasons_.size(); }
  bool empty() const { return reasons_.empty(); }

  // Returns the index of the first failing guard, or -1. Does not allocate.
  int64_t first_failure(const int64_t* slots) const { return program_.first_zero(slots); }

  // Returns "expected s0 == s2 (asked by aten::add at model.py:42), got s0 = 3, s2 = 4". `slot_names[i]` names slot i;
  // an empty or missing name prints as "slot <i>".
  std::string explain(size_t index, const int64_t* slots, std::span<const std::string> slot_names) const;
  // Returns only the condition: "s0 == s2".
  std::string condition(size_t index, std::span<const std::string> slot_names) const;
  const sym::Reason& reason(size_t index) const { return reasons_[index]; }
  // Returns all guards, a line for each, for logs.
  std::string describe(std::span<const std::string> slot_names) const;

  const sym::SizeProgram& program() const { return program_; }

 private:
  sym::SizeProgram program_;
  std::vector<sym::Reason> reasons_;
};

}  // namespace cresset::guard
