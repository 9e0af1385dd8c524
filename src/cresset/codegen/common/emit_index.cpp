#include "codegen/common/emit_index.h"

#include <llvm/Analysis/VectorUtils.h>

#include <algorithm>

namespace cresset::codegen {

using llvm::Value;
using sym::Kind;

const IndexEmitter::About& IndexEmitter::about(ExprId expr) {
  const auto [found, fresh] = about_.try_emplace(expr);
  About& out = found->second;
  if (!fresh) return out;
  s_.kernel.env().pool().collect_vars(expr, out.vars);
  for (VarId var : out.vars) {
    out.vector |= var == s_.plan.loops[s_.plan.vector].var;
    for (size_t k = 0; k < s_.plan.loops.size(); ++k)
      if (s_.plan.loops[k].var == var) out.depth = std::max(out.depth, s_.plan.loop_depth(k));
    for (const loop::Binding& b : s_.kernel.bindings) {
      if (b.var != var) continue;
      out.bound = true;
      out.depth = std::max(out.depth, s_.plan.depth[b.scalar.index]);
    }
  }
  return out;
}

bool IndexEmitter::is_vector(ExprId expr) {
  const About& of = about(expr);
  if (of.vector || !of.bound) return of.vector;
  return std::any_of(s_.kernel.bindings.begin(), s_.kernel.bindings.end(), [&](const loop::Binding& b) {
    const bool mentioned = std::find(of.vars.begin(), of.vars.end(), b.var) != of.vars.end();
    return mentioned && EmitState::is_vector(s_.value(b.scalar));
  });
}

Value* IndexEmitter::variable(VarId var) {
  for (const loop::Binding& b : s_.kernel.bindings)
    if (b.var == var) return s_.value(b.scalar);
  auto it = s_.vars.find(var);
  CRESSET_CHECK(it != s_.vars.end(), "an index mentions a variable that has no value here");
  if (var != s_.plan.loops[s_.plan.vector].var || s_.lanes == 1) return it->second;
  return s_.ir.CreateAdd(s_.splat(it->second), s_.iota());
}

void IndexEmitter::prepare(uint16_t depth) {
  const auto emit_part = [&](ExprId part) {
    if (part.valid() && !about(part).bound && about(part).depth == depth) emit(part);
  };
  const auto emit_parts = [&](const IndexForm& form) {
    if (!form.coefficient.valid()) return emit_part(form.expr);
    emit_part(form.coefficient);
    emit_part(form.rest);
  };
  for (size_t i = 0; i < s_.plan.scalar_index.size(); ++i)
    if (s_.plan.live[i] && s_.plan.scalar_index[i].expr.valid()) emit_parts(s_.plan.scalar_index[i]);
  for (const IndexForm& form : s_.plan.store_index) emit_parts(form);
}

Value* IndexEmitter::emit(const IndexForm& form) {
  if (!form.coefficient.valid() || s_.lanes == 1 || is_vector(form.coefficient)) return emit(form.expr);
  if (s_.kernel.env().pool().is_const(form.coefficient, 0)) return emit(form.rest);
  Value* coefficient = emit(form.coefficient);
  Value* start = s_.vars.at(s_.plan.loops[s_.plan.vector].var);
  Value *lanes = s_.splat(coefficient), *lane = s_.iota();
  match(lanes, lane);
  Value* steps = s_.ir.CreateMul(lanes, lane);
  Value* rest = emit(form.rest);
  match(coefficient, start);
  match(steps, rest);
  if (EmitState::is_vector(rest)) steps = s_.ir.CreateAdd(steps, rest), rest = s_.index(0);
  Value* first = s_.ir.CreateMul(coefficient, start);
  match(rest, first);
  first = s_.splat(s_.ir.CreateAdd(rest, first));
  match(first, steps);
  return s_.ir.CreateAdd(first, steps);
}

IndexEmitter::Access IndexEmitter::access(const IndexForm& form, Value*& offset) {
  if (!is_vector(form.expr) || s_.lanes == 1) {
    offset = emit(form.expr);
    return Access::Uniform;
  }
  if (form.coefficient.valid() && !is_vector(form.rest)) {
    Value* start = s_.vars.at(s_.plan.loops[s_.plan.vector].var);
    if (s_.kernel.env().pool().is_const(form.coefficient, 1)) {
      Value* rest = emit(form.rest);
      match(rest, start);
      offset = s_.ir.CreateAdd(rest, start);
      return Access::Contiguous;
    }
    if (const int apart = step(form); apart != 0) {
      Value *line = s_.ir.CreateMul(start, s_.index(apart)), *rest = emit(form.rest);
      match(rest, line);
      offset = s_.ir.CreateAdd(rest, line);
      return Access::Strided;
    }
  }
  offset = s_.splat(emit(form));
  return Access::Scattered;
}

int IndexEmitter::step(const IndexForm& form) const {
  const sym::ExprPool& pool = s_.kernel.env().pool();
  if (!form.coefficient.valid() || !pool.is_const(form.coefficient)) return 0;
  const int64_t apart = pool.const_value(form.coefficient);
  return apart == -1 || (apart >= 2 && apart <= 4) ? static_cast<int>(apart) : 0;
}

Value* IndexEmitter::emit(ExprId id) {
  const sym::ExprPool& pool = s_.kernel.env().pool();
  const sym::Expr& e = pool[id];
  if (e.kind == Kind::Const) return s_.index(e.value);
  if (e.kind == Kind::Var) return variable(VarId{static_cast<uint32_t>(e.value)});
  const About& of = about(id);
  if (of.bound) return fold_operands(id);
  const int lanes = of.vector ? s_.lanes : 1;
  if (Value* before = known(id, of, lanes)) return before;
  Value* value = fold_operands(id);
  Known& entry = known_.emplace_back(Known{id, lanes, {}, value});
  for (VarId var : of.vars) entry.vars.push_back(s_.vars.at(var));
  return value;
}

Value* IndexEmitter::known(ExprId expr, const About& about, int lanes) const {
  const auto current = [&](const Known& k) {
    if (k.expr != expr || k.lanes != lanes) return false;
    for (size_t i = 0; i < about.vars.size(); ++i)
      if (s_.vars.at(about.vars[i]) != k.vars[i]) return false;
    return true;
  };
  const auto found = std::find_if(known_.begin(), known_.end(), current);
  return found == known_.end() ? nullptr : found->value;
}

Value* IndexEmitter::fold_operands(ExprId id) {
  const sym::ExprPool& pool = s_.kernel.env().pool();
  std::vector<ExprId> operands(pool.operands(id).begin(), pool.operands(id).end());
  const Kind kind = pool[id].kind;
  if (kind == Kind::Not)
    return s_.ir.CreateXor(truth(emit(operands[0])), s_.constant_int_like(truth(emit(operands[0])), 1));
  if (kind == Kind::Add || kind == Kind::Mul) {  // invariant operands first: they are hoisted together
    std::stable_sort(operands.begin(), operands.end(),
                     [&](ExprId a, ExprId b) { return about(a).depth < about(b).depth; });
  }
  Value* out = emit(operands[0]);
  for (size_t i = 1; i < operands.size(); ++i) {
    Value* next = emit(operands[i]);
    if (EmitState::is_vector(out) || EmitState::is_vector(next)) out = s_.splat(out), next = s_.splat(next);
    match(out, next);
    out = combine(id, out, next);
  }
  return out;
}

// Expressions that mention a scalar's value have 64 bits, whatever others have.
void IndexEmitter::match(Value*& a, Value*& b) {
  const unsigned bits = std::max(a->getType()->getScalarSizeInBits(), b->getType()->getScalarSizeInBits());
  for (Value** v : {&a, &b})
    if ((*v)->getType()->getScalarSizeInBits() < bits) *v = s_.widened_index(*v);
}

Value* IndexEmitter::truth(Value* v) {
  return s_.ir.CreateZExt(s_.ir.CreateICmpNE(v, s_.constant_int_like(v, 0)), v->getType());
}

Value* IndexEmitter::relation(llvm::CmpInst::Predicate predicate, Value* a, Value* b) {
  return s_.ir.CreateZExt(s_.ir.CreateICmp(predicate, a, b), a->getType());
}

Value* IndexEmitter::combine(ExprId id, Value* a, Value* b) {
  switch (s_.kernel.env().pool()[id].kind) {
    case Kind::Add:
      return s_.ir.CreateAdd(a, b);
    case Kind::Mul:
      return s_.ir.CreateMul(a, b);
    case Kind::FloorDiv:
    case Kind::Mod:
      return division(id, a, b);
    case Kind::Min:
      return s_.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
    case Kind::Max:
      return s_.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
    case Kind::Eq:
      return relation(llvm::CmpInst::ICMP_EQ, a, b);
    case Kind::Ne:
      return relation(llvm::CmpInst::ICMP_NE, a, b);
    case Kind::Lt:
      return relation(llvm::CmpInst::ICMP_SLT, a, b);
    case Kind::Le:
      return relation(llvm::CmpInst::ICMP_SLE, a, b);
    case Kind::And:
      return s_.ir.CreateAnd(truth(a), truth(b));
    case Kind::Or:
      return s_.ir.CreateOr(truth(a), truth(b));
    case Kind::Const:
    case Kind::Var:
    case Kind::Not:
      break;
  }
  CRESSET_CHECK(false, "not an operator of two operands");
}

// No machine divides vectors of i64, but AVX-512 converts them to doubles and back. A quotient by the reciprocal has a
// relative error of at most 2^-51, from two roundings. The quotient of the remainder is off by at most one.
Value* IndexEmitter::divide_by_reciprocal(Value* a, Value* b, bool is_mod) {
  llvm::Type* real = a->getType()->getWithNewType(s_.ir.getDoubleTy());
  Value* uniform = llvm::getSplatValue(b);
  Value* one_by = s_.ir.CreateSIToFP(uniform != nullptr ? uniform : b, uniform != nullptr ? s_.ir.getDoubleTy() : real);
  one_by = s_.splat(s_.ir.CreateFDiv(llvm::ConstantFP::get(one_by->getType(), 1), one_by));
  auto quotient_of = [&](Value* v) {
    return s_.ir.CreateFPToSI(s_.ir.CreateFMul(s_.ir.CreateSIToFP(v, real), one_by), a->getType());
  };
  Value* quotient = quotient_of(a);
  Value* rest = s_.ir.CreateSub(a, s_.ir.CreateMul(quotient, b));
  Value* more = quotient_of(rest);
  quotient = s_.ir.CreateAdd(quotient, more);
  rest = s_.ir.CreateSub(rest, s_.ir.CreateMul(more, b));
  Value* below = s_.ir.CreateICmpSLT(rest, s_.constant_int_like(rest, 0));
  Value* above = s_.ir.CreateICmpSGE(rest, b);
  if (is_mod) {
    rest = s_.ir.CreateSelect(below, s_.ir.CreateAdd(rest, b), rest);
    return s_.ir.CreateSelect(above, s_.ir.CreateSub(rest, b), rest);
  }
  Value* one = s_.constant_int_like(quotient, 1);
  quotient = s_.ir.CreateSelect(below, s_.ir.CreateSub(quotient, one), quotient);
  return s_.ir.CreateSelect(above, s_.ir.CreateAdd(quotient, one), quotient);
}

// Lanes past a mask and code hoisted out of empty loops may see a divisor of 0, which must not trap.
Value* IndexEmitter::division(ExprId id, Value* a, Value* b) {
  const auto& proved = s_.plan.unsigned_division;
  const bool is_unsigned = std::binary_search(proved.begin(), proved.end(), id);
  const bool is_mod = s_.kernel.env().pool()[id].kind == Kind::Mod;
  Value* zero = s_.constant_int_like(b, 0);
  if (!llvm::isa<llvm::Constant>(b)) b = s_.ir.CreateSelect(s_.ir.CreateICmpEQ(b, zero), s_.constant_int_like(b, 1), b);
  if (is_unsigned && EmitState::is_vector(a) && s_.has_scalef && !llvm::isa<llvm::Constant>(b))
    return divide_by_reciprocal(a, b, is_mod);
  if (is_unsigned) return is_mod ? s_.ir.CreateURem(a, b) : s_.ir.CreateUDiv(a, b);
  Value* quotient = s_.ir.CreateSDiv(a, b);
  Value* remainder = s_.ir.CreateSub(a, s_.ir.CreateMul(quotient, b));
  Value* inexact = s_.ir.CreateICmpNE(remainder, zero);
  Value* signs_differ = s_.ir.CreateICmpSLT(s_.ir.CreateXor(remainder, b), zero);
  Value* adjust = s_.ir.CreateAnd(inexact, signs_differ);
  if (is_mod) return s_.ir.CreateSelect(adjust, s_.ir.CreateAdd(remainder, b), remainder);
  return s_.ir.CreateSub(quotient, s_.ir.CreateZExt(adjust, quotient->getType()));
}

}  // namespace cresset::codegen
