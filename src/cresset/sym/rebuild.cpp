#include "sym/rebuild.h"

#include "base/check.h"

namespace cresset::sym {
namespace {

template <class Combine>
ExprId fold(std::span<const ExprId> operands, Combine&& combine) {
  ExprId result = operands[0];
  for (const ExprId operand : operands.subspan(1)) result = combine(result, operand);
  return result;
}

}  // namespace

ExprId rebuild(ExprPool& pool, ExprId id, std::span<const ExprId> operands) {
  const Kind kind = pool[id].kind;
  return kind == Kind::Const || kind == Kind::Var ? id : rebuild(pool, kind, operands);
}

ExprId rebuild(ExprPool& pool, Kind kind, std::span<const ExprId> operands) {
  switch (kind) {
    case Kind::Const:
    case Kind::Var:
      break;
    case Kind::Add:
      return pool.sum(operands);
    case Kind::Mul:
      return pool.product(operands);
    case Kind::FloorDiv:
      return pool.floor_div(operands[0], operands[1]);
    case Kind::Mod:
      return pool.mod(operands[0], operands[1]);
    case Kind::Min:
      return fold(operands, [&](ExprId a, ExprId b) { return pool.min(a, b); });
    case Kind::Max:
      return fold(operands, [&](ExprId a, ExprId b) { return pool.max(a, b); });
    case Kind::Eq:
      return pool.eq(operands[0], operands[1]);
    case Kind::Ne:
      return pool.ne(operands[0], operands[1]);
    case Kind::Lt:
      return pool.lt(operands[0], operands[1]);
    case Kind::Le:
      return pool.le(operands[0], operands[1]);
    case Kind::And:
      return fold(operands, [&](ExprId a, ExprId b) { return pool.logical_and(a, b); });
    case Kind::Or:
      return fold(operands, [&](ExprId a, ExprId b) { return pool.logical_or(a, b); });
    case Kind::Not:
      return pool.logical_not(operands[0]);
  }
  CRESSET_CHECK(false, "a leaf is not rebuilt");
}

std::optional<ExprId> transfer(const ExprPool& from, ExprId id, ExprPool& to,
                               const std::unordered_map<VarId, ExprId>& vars) {
  if (from.is_const(id)) return to.constant(from.const_value(id));
  if (from.is_var(id)) {
    const auto it = vars.find(from.var_of(id));
    return it == vars.end() ? std::nullopt : std::optional(it->second);
  }
  std::vector<ExprId> operands;
  for (const ExprId operand : from.operands(id)) {
    const std::optional<ExprId> there = transfer(from, operand, to, vars);
    if (!there) return std::nullopt;
    operands.push_back(*there);
  }
  return rebuild(to, from[id].kind, operands);
}

}  // namespace cresset::sym
