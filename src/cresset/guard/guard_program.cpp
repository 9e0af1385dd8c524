#include "guard/guard_program.h"

#include <fmt/format.h>

#include <algorithm>

namespace cresset::guard {
namespace {

using sym::ExprId;
using sym::VarId;

// A condition decompiled from the program. The index of each variable is its slot.
struct Condition {
  sym::ExprPool pool;
  ExprId root;

  Condition(const sym::SizeProgram& program, size_t index) : root(program.decompile(pool, index)) {}

  std::string text(std::span<const std::string> slot_names) const {
    sym::VarNames names;
    for (const VarId slot : slots()) names[slot] = name(slot, slot_names);
    return sym::to_string(pool, root, names);
  }
  std::vector<VarId> slots() const {
    std::vector<VarId> out;
    pool.collect_vars(root, out);
    std::sort(out.begin(), out.end());
    return out;
  }
  static std::string name(VarId slot, std::span<const std::string> slot_names) {
    const bool named = slot.index < slot_names.size() && !slot_names[slot.index].empty();
    return named ? slot_names[slot.index] : fmt::format("slot {}", slot.index);
  }
};

std::string asked_by(const sym::Reason& reason) {
  if (reason.op.empty() && reason.location.empty()) return "";
  if (reason.op.empty()) return fmt::format(" (asked by {})", reason.location);
  if (reason.location.empty()) return fmt::format(" (asked by {})", reason.op);
  return fmt::format(" (asked by {} at {})", reason.op, reason.location);
}

}  // namespace

GuardProgram GuardProgram::compile(const sym::ExprPool& pool, std::span<const sym::SizeGuard> guards,
                                   const std::unordered_map<VarId, uint32_t>& slot_of) {
  GuardProgram out;
  std::vector<ExprId> conditions;
  for (const sym::SizeGuard& guard : guards) {
    conditions.push_back(guard.condition);
    out.reasons_.push_back(guard.reason);
  }
  out.program_ = sym::SizeProgram::compile(pool, conditions, slot_of);
  return out;
}

std::string GuardProgram::condition(size_t index, std::span<const std::string> slot_names) const {
  return Condition(program_, index).text(slot_names);
}

std::string GuardProgram::explain(size_t index, const int64_t* slots, std::span<const std::string> slot_names) const {
  const Condition condition(program_, index);
  std::string out = fmt::format("expected {}{}", condition.text(slot_names), asked_by(reasons_[index]));
  std::string_view separator = ", got ";
  for (const VarId slot : condition.slots()) {
    out += fmt::format("{}{} = {}", separator, Condition::name(slot, slot_names), slots[slot.index]);
    separator = ", ";
  }
  return out;
}

std::string GuardProgram::describe(std::span<const std::string> slot_names) const {
  std::string out;
  for (size_t i = 0; i < size(); ++i) out += fmt::format("{}{}\n", condition(i, slot_names), asked_by(reasons_[i]));
  return out;
}

}  // namespace cresset::guard
