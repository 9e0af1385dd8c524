// Addresses with divisions, as in windows, rolled and repeated tensors. Lanes with equal quotients are neighbours.
#include <algorithm>
#include <utility>

#include "codegen/common/emit_index.h"

namespace cresset::codegen {

using llvm::Value;
using sym::Kind;

namespace {

constexpr int64_t kMostSteps = int64_t{1} << 20;  // between lanes, so that products of steps stay far from overflow

bool is_step(int64_t step) { return std::abs(step) <= kMostSteps; }

}  // namespace

std::optional<IndexEmitter::Run> IndexEmitter::run(const IndexForm& form) {
  if (s_.lanes == 1 || form.coefficient.valid() || about(form.expr).bound || !is_vector(form.expr)) return {};
  Divisions divisions;
  const std::optional<int64_t> step = lane_step(form.expr, divisions);
  if (!step || divisions.empty() || *step == 0 || *step < -1 || *step > 4) return {};
  Run out{nullptr, static_cast<int>(*step), s_.ir.getTrue()};
  Value* last = last_lane();
  const int lanes = std::exchange(s_.lanes, 1);
  for (const Division& d : divisions) out.holds = s_.ir.CreateAnd(out.holds, stays_inside(d, last));
  out.first = emit(form.expr);
  s_.lanes = lanes;
  return out;
}

Value* IndexEmitter::where(Value* condition, const std::function<Value*()>& then,
                           const std::function<Value*()>& otherwise) {
  llvm::Function* function = s_.ir.GetInsertBlock()->getParent();
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(s_.ir.getContext(), name, function); };
  llvm::BasicBlock *yes = block("then"), *no = block("otherwise"), *after = block("after");
  s_.ir.CreateCondBr(condition, yes, no);
  const auto make = [&](llvm::BasicBlock* at, const std::function<Value*()>& body) {
    s_.ir.SetInsertPoint(at);
    const size_t before = scope();
    Value* value = body();
    leave(before);
    llvm::BasicBlock* end = s_.ir.GetInsertBlock();
    s_.ir.CreateBr(after);
    return std::pair(value, end);
  };
  const auto [first, first_end] = make(yes, then);
  const auto [second, second_end] = make(no, otherwise);
  s_.ir.SetInsertPoint(after);
  llvm::PHINode* out = s_.ir.CreatePHI(first->getType(), 2);
  out->addIncoming(first, first_end);
  out->addIncoming(second, second_end);
  return out;
}

Value* IndexEmitter::emit_in_runs(const IndexForm& form) {
  const std::optional<Run> lanes = run(form);
  if (!lanes) return emit(form);
  const auto neighbours = [&] {
    return s_.ir.CreateAdd(s_.splat(lanes->first), s_.ir.CreateMul(s_.iota(), s_.splat(s_.i64(lanes->step))));
  };
  return where(lanes->holds, neighbours, [&] { return s_.splat(emit(form)); });
}

// The distance between the values of neighbouring lanes, if every division in `divisions` has the same quotient in all
// lanes. Returns nullopt when the distance is not known to be a constant.
std::optional<int64_t> IndexEmitter::lane_step(ExprId expr, Divisions& divisions) {
  const sym::ExprPool& pool = s_.kernel.env().pool();
  const sym::Expr& e = pool[expr];
  if (!about(expr).vector) return 0;
  switch (e.kind) {
    case Kind::Var:
      return 1;
    case Kind::Add:
      return step_of_sum(expr, divisions);
    case Kind::Mul:
      return step_of_product(expr, divisions);
    case Kind::FloorDiv:
    case Kind::Mod:
      return step_of_division(expr, divisions);
    case Kind::Const:
    case Kind::Min:
    case Kind::Max:
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le:
    case Kind::And:
    case Kind::Or:
    case Kind::Not:
      return std::nullopt;
  }
  CRESSET_CHECK(false, "unknown kind");
}

std::optional<int64_t> IndexEmitter::step_of_sum(ExprId expr, Divisions& divisions) {
  int64_t sum = 0;
  for (const ExprId operand : s_.kernel.env().pool().operands(expr)) {
    const std::optional<int64_t> step = lane_step(operand, divisions);
    if (!step || !is_step(sum + *step)) return {};
    sum += *step;
  }
  return sum;
}

std::optional<int64_t> IndexEmitter::step_of_product(ExprId expr, Divisions& divisions) {
  const sym::ExprPool& pool = s_.kernel.env().pool();
  int64_t step = 0, factor = 1;
  bool varies = false, known = true;  // known: the other factors are numbers
  for (const ExprId operand : pool.operands(expr)) {
    if (about(operand).vector) {
      const std::optional<int64_t> own = lane_step(operand, divisions);
      if (!own || varies) return {};
      varies = true;
      step = *own;
    } else if (pool.is_const(operand) && is_step(pool.const_value(operand)) && is_step(factor)) {
      factor *= pool.const_value(operand);
    } else {
      known = false;
    }
  }
  if (step == 0) return 0;
  if (!known || !is_step(factor) || !is_step(step * factor)) return {};
  return step * factor;
}

std::optional<int64_t> IndexEmitter::step_of_division(ExprId expr, Divisions& divisions) {
  const sym::ExprPool& pool = s_.kernel.env().pool();
  const ExprId over = pool.operands(expr)[0], by = pool.operands(expr)[1];
  if (about(by).vector) return {};
  const std::optional<int64_t> step = lane_step(over, divisions);
  if (!step) return {};
  if (pool.is_const(by) && std::abs(*step) * (s_.lanes - 1) >= pool.const_value(by)) return {};  // never
  const auto same = [&](const Division& d) { return d.over == over && d.by == by; };
  if (*step != 0 && std::none_of(divisions.begin(), divisions.end(), same))
    divisions.push_back({expr, over, by, *step});
  return pool[expr].kind == Kind::Mod ? *step : 0;
}

// Whether all lanes have the quotient of lane 0; emitted for lane 0.
Value* IndexEmitter::stays_inside(const Division& d, Value* last) {
  const bool is_mod = s_.kernel.env().pool()[d.expr].kind == Kind::Mod;
  Value *by = emit(d.by), *rest = emit(d.expr);
  if (!is_mod) rest = s_.ir.CreateSub(emit(d.over), s_.ir.CreateMul(rest, by));
  Value* end = s_.ir.CreateAdd(rest, s_.ir.CreateMul(last, s_.i64(d.step)));
  Value* inside = d.step > 0 ? s_.ir.CreateICmpSLT(end, by) : s_.ir.CreateICmpSGE(end, s_.i64(0));
  return s_.ir.CreateAnd(inside, s_.ir.CreateICmpSGT(by, s_.i64(0)));
}

// The index of the last active lane.
Value* IndexEmitter::last_lane() {
  if (s_.mask == nullptr) return s_.i64(s_.lanes - 1);
  Value* bits = s_.ir.CreateBitCast(s_.mask, s_.ir.getIntNTy(static_cast<unsigned>(s_.lanes)));
  Value* inside = s_.ir.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits);
  return s_.ir.CreateSub(s_.ir.CreateZExtOrTrunc(inside, s_.ir.getInt64Ty()), s_.i64(1));
}

}  // namespace cresset::codegen
