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
  switch (pool[id].kind) {
    case Kind::Const:
    case Kind::Var:
      return id;
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
  CRESSET_CHECK(false, "unknown kind");
}

}  // namespace cresset::sym
