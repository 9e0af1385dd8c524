#include "sym/expr.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace cresset::sym {
namespace {

constexpr size_t kInitialTable = 1024;

uint32_t hash_node(Kind kind, std::span<const ExprId> operands, int64_t value) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15ull;
  uint64_t h = (static_cast<uint64_t>(value) * 32 + static_cast<uint64_t>(kind) + 1) * kMultiplier;
  for (const ExprId operand : operands) h = ((h ^ (h >> 29)) + operand.index + 1) * kMultiplier;
  return static_cast<uint32_t>(h >> 32);
}

template <class T>
T saturating_sum(T a, T b) {
  return b > std::numeric_limits<T>::max() - a ? std::numeric_limits<T>::max() : static_cast<T>(a + b);
}

}  // namespace

ExprTable::ExprTable() : table_(kInitialTable) {
  exprs_.reserve(kInitialTable / 2);
  operands_.reserve(kInitialTable);
}

ExprId ExprTable::intern(Kind kind, std::span<const ExprId> operands, int64_t value) {
  const uint32_t hash = hash_node(kind, operands, value);
  const size_t mask = table_.size() - 1;
  size_t slot = hash & mask;
  for (; table_[slot].index != 0; slot = (slot + 1) & mask) {
    if (table_[slot].hash != hash) continue;
    const ExprId id{table_[slot].index - 1};
    const Expr& e = exprs_[id.index];
    if (e.kind == kind && e.value == value && e.count == operands.size() &&
        std::equal(operands.begin(), operands.end(), operands_.begin() + e.first))
      return id;
  }
  const ExprId id{static_cast<uint32_t>(exprs_.size())};
  Expr e{.kind = kind, .has_mod = kind == Kind::Mod, .hash = hash};
  e.first = static_cast<uint32_t>(operands_.size());
  e.count = static_cast<uint32_t>(operands.size());
  e.monomial = id;
  e.value = value;
  if (kind == Kind::Var) e.var_mask = uint64_t{1} << (value % 64);
  for (const ExprId operand : operands) {
    const Expr& o = exprs_[operand.index];
    e.weight = saturating_sum(e.weight, o.weight);
    e.depth = std::max(e.depth, saturating_sum<uint16_t>(o.depth, 1));
    e.var_mask |= o.var_mask;
    e.has_mod |= kind == Kind::Mul && o.kind == Kind::Mod;
  }
  operands_.insert(operands_.end(), operands.begin(), operands.end());
  exprs_.push_back(e);
  table_[slot] = {hash, id.index + 1};
  if (exprs_.size() * 2 > table_.size()) grow_table();
  return id;
}

void ExprTable::grow_table() {
  std::vector<Slot> bigger(table_.size() * 2);
  const size_t mask = bigger.size() - 1;
  for (uint32_t i = 0; i < exprs_.size(); ++i) {
    size_t slot = exprs_[i].hash & mask;
    while (bigger[slot].index != 0) slot = (slot + 1) & mask;
    bigger[slot] = {exprs_[i].hash, i + 1};
  }
  table_ = std::move(bigger);
}

ExprId ExprTable::var(VarId var) {
  CRESSET_CHECK(var.valid(), "a variable");
  next_var_ = std::max(next_var_, var.index + 1);  // a parser may name variables before new_var() created them
  return intern(Kind::Var, {}, var.index);
}

int64_t ExprTable::const_value(ExprId id) const {
  CRESSET_CHECK(is_const(id), "expression is not a constant");
  return exprs_[id.index].value;
}

VarId ExprTable::var_of(ExprId id) const {
  CRESSET_CHECK(is_var(id), "expression is not a variable");
  return VarId{static_cast<uint32_t>(exprs_[id.index].value)};
}

bool ExprPool::is_boolean(ExprId id) const {
  const Expr& e = exprs_[id.index];
  return e.kind >= Kind::Eq || (e.kind == Kind::Const && (e.value == 0 || e.value == 1));
}

}  // namespace cresset::sym
