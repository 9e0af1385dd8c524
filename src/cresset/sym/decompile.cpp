// Converts the instructions of a size program back to expressions. Readers of a program thereby see the computation
// which is executed.
#include "base/check.h"
#include "sym/size_program.h"

namespace cresset::sym {
namespace {

ExprId expression(ExprPool& pool, const SizeProgram::Instr& i, const std::vector<ExprId>& r) {
  const auto shifted = [&] { return pool.add(r[i.b], pool.constant(i.value)); };
  switch (i.kind) {
    case Kind::Const:
      return pool.constant(i.value);
    case Kind::Var:
      return pool.var(VarId{i.a});
    case Kind::Add:
      return pool.add(r[i.a], pool.mul(pool.constant(i.value), r[i.b]));
    case Kind::Mul:
      return pool.mul(r[i.a], r[i.b]);
    case Kind::FloorDiv:
      return pool.floor_div(r[i.a], r[i.b]);
    case Kind::Mod:
      return pool.mod(r[i.a], r[i.b]);
    case Kind::Min:
      return pool.min(r[i.a], r[i.b]);
    case Kind::Max:
      return pool.max(r[i.a], r[i.b]);
    case Kind::Eq:
      return pool.eq(r[i.a], shifted());
    case Kind::Ne:
      return pool.ne(r[i.a], shifted());
    case Kind::Lt:
      return pool.lt(r[i.a], shifted());
    case Kind::Le:
      return pool.le(r[i.a], shifted());
    case Kind::And:
      return pool.logical_and(r[i.a], r[i.b]);
    case Kind::Or:
      return pool.logical_or(r[i.a], r[i.b]);
    case Kind::Not:
      return pool.logical_not(r[i.a]);
  }
  CRESSET_CHECK(false, "unknown kind");
}

}  // namespace

ExprId SizeProgram::decompile(ExprPool& pool, size_t output) const {
  CRESSET_CHECK(output < outputs_.size(), "an output of the program");
  std::vector<bool> needed(outputs_[output] + 1, false);
  needed[outputs_[output]] = true;
  for (size_t i = needed.size(); i-- > 0;) {
    const Instr& instr = instrs_[i];
    if (!needed[i] || instr.kind == Kind::Const || instr.kind == Kind::Var) continue;
    needed[instr.a] = true;
    needed[instr.b] = true;
  }
  std::vector<ExprId> registers(needed.size());
  for (size_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) registers[i] = expression(pool, instrs_[i], registers);
  }
  return registers[outputs_[output]];
}

}  // namespace cresset::sym
