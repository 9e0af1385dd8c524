#include "codegen/common/emit_reduce.h"

#include <limits>

namespace cresset::codegen {

using llvm::Value;
using loop::Combine;
using loop::Scalar;

namespace {

bool is_arg(Combine combine) { return combine == Combine::ArgMax || combine == Combine::ArgMin; }
bool wants_greatest(Combine combine) { return combine == Combine::Max || combine == Combine::ArgMax; }
constexpr int64_t kNoIndex = std::numeric_limits<int64_t>::max();

}  // namespace

bool ReduceEmitter::wants_runs(const loop::Kernel& kernel, ScalarId reduce) {
  return kernel[reduce].combine == Combine::Sum && is_float(kernel[reduce].dtype);
}

llvm::AllocaInst* ReduceEmitter::slot(llvm::Type* type) {
  llvm::BasicBlock& entry = s_.ir.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> at(&entry, entry.begin());
  return at.CreateAlloca(type);
}

llvm::Constant* ReduceEmitter::identity(const Scalar& reduce, llvm::Type* type) {
  const DType dtype = operand_dtype(reduce);
  const bool real = is_float(dtype);
  const unsigned bits = type->getScalarSizeInBits();
  switch (reduce.combine) {
    case Combine::Sum:
    case Combine::Any:
      return llvm::Constant::getNullValue(type);
    case Combine::Prod:
      return real ? llvm::ConstantFP::get(type, 1) : llvm::ConstantInt::get(type, 1);
    case Combine::All:
      return llvm::Constant::getAllOnesValue(type);
    case Combine::Max:
    case Combine::ArgMax:
      if (real) return llvm::ConstantFP::getInfinity(type, /*Negative=*/true);
      if (is_unsigned(dtype)) return llvm::Constant::getNullValue(type);
      return llvm::ConstantInt::get(type, llvm::APInt::getSignedMinValue(bits));
    case Combine::Min:
    case Combine::ArgMin:
      if (real) return llvm::ConstantFP::getInfinity(type, /*Negative=*/false);
      if (is_unsigned(dtype)) return llvm::Constant::getAllOnesValue(type);
      return llvm::ConstantInt::get(type, llvm::APInt::getSignedMaxValue(bits));
  }
  CRESSET_CHECK(false, "unknown combine");
}

void ReduceEmitter::join(ScalarId max, ScalarId sum, std::function<Value*(Value*)> exp) {
  joined_[max] = {sum, std::move(exp)};
}

static ScalarId id_of(const loop::Kernel& kernel, const Scalar& scalar) {
  return {static_cast<uint32_t>(&scalar - kernel.scalars.data())};
}

ScalarId ReduceEmitter::joined_sum(ScalarId max) const {
  const auto found = joined_.find(max);
  return found == joined_.end() ? ScalarId{} : found->second.sum;
}

bool ReduceEmitter::is_joined(const Scalar& reduce) const { return joined_.contains(id_of(s_.kernel, reduce)); }

Value* ReduceEmitter::exp_of(const Scalar& max, Value* x) { return joined_.at(id_of(s_.kernel, max)).exp(x); }

// exp(-|a - b|): 1 for equal infinities, whose difference is a NaN.
Value* ReduceEmitter::less_than_both(const Scalar& max, Value* a, Value* b) {
  Value* apart = s_.ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, s_.ir.CreateFSub(a, b));
  Value* scale = exp_of(max, s_.ir.CreateFNeg(apart));
  return s_.ir.CreateSelect(s_.ir.CreateFCmpOEQ(a, b), s_.constant_like(a, 1), scale);
}

// Masked points become minus infinity, which adds nothing.
void ReduceEmitter::fold_joined(const Accumulator& acc) {
  Value* x = s_.splat(s_.value(s_.scalar(acc.reduce).a));
  if (s_.mask != nullptr) x = s_.ir.CreateSelect(s_.mask, x, identity(s_.scalar(acc.reduce), x->getType()));
  pending_[acc.value].push_back(x);
}

// The points' sum relative to the base, behind a branch that makes the base great enough.
void ReduceEmitter::end_round(const Accumulator& acc) {
  const auto found = pending_.find(acc.value);
  if (found == pending_.end() || found->second.empty()) return;
  const std::vector<Value*> points = std::move(found->second);
  found->second.clear();
  llvm::IRBuilder<>& ir = s_.ir;
  llvm::Type* type = acc.value->getAllocatedType();
  Value *max = ir.CreateLoad(type, acc.value), *grows = nullptr;
  for (Value* x : points) {
    Value* more = ir.CreateFCmpUGT(x, max);  // a NaN, too
    grows = grows == nullptr ? more : ir.CreateOr(grows, more);
  }
  if (grows->getType()->isVectorTy()) grows = ir.CreateOrReduce(grows);
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  auto* rare = llvm::BasicBlock::Create(ir.getContext(), "grows", function);
  auto* after = llvm::BasicBlock::Create(ir.getContext(), "grown", function);
  ir.CreateCondBr(grows, rare, after);
  ir.SetInsertPoint(rare);
  scale_down(acc, points);
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
  Value *sum = ir.CreateLoad(type, acc.index), *base = ir.CreateLoad(type, acc.base);
  const Scalar& reduce = s_.scalar(acc.reduce);
  for (Value* x : points) sum = ir.CreateFAdd(sum, exp_of(reduce, ir.CreateFSub(x, base)));
  ir.CreateStore(sum, acc.index);
}

void ReduceEmitter::scale_down(const Accumulator& acc, const std::vector<Value*>& points) {
  llvm::IRBuilder<>& ir = s_.ir;
  llvm::Type* type = acc.value->getAllocatedType();
  Value *before = ir.CreateLoad(type, acc.value), *max = before;
  for (Value* x : points) max = scalars_.extreme(/*greatest=*/true, DType::F32, max, x);
  Value* sum = ir.CreateFMul(ir.CreateLoad(type, acc.index), less_than_both(s_.scalar(acc.reduce), before, max));
  Value* magnitude = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, max);
  Value* infinite = ir.CreateFCmpOEQ(magnitude, llvm::ConstantFP::getInfinity(type));
  ir.CreateStore(max, acc.value);
  ir.CreateStore(sum, acc.index);
  ir.CreateStore(ir.CreateSelect(infinite, s_.constant_like(max, 0), max), acc.base);
}

// Sums are relative to the maxima: that of the lesser maximum is scaled down.
ReduceEmitter::Pair ReduceEmitter::combine_joined(const Scalar& max, Pair a, Pair b) {
  Value* scale = less_than_both(max, a.value, b.value);
  Value* grows = s_.ir.CreateFCmpOGT(b.value, a.value);
  Value* down = s_.ir.CreateSelect(grows, a.index, b.index);
  Value* same = s_.ir.CreateSelect(grows, b.index, a.index);
  Value* sum = s_.ir.CreateFAdd(s_.ir.CreateFMul(down, scale), same);
  return {scalars_.extreme(/*greatest=*/true, DType::F32, a.value, b.value), sum};
}

// Where the maximum is infinite, the point that has it differs from it by a NaN.
Value* ReduceEmitter::joined_result(Pair v, Value* has_points) {
  Value* magnitude = s_.ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v.value);
  Value* infinite = s_.ir.CreateFCmpOEQ(magnitude, llvm::ConstantFP::getInfinity(v.value->getType()));
  Value* nan = s_.ir.CreateAnd(infinite, s_.splat_like(infinite, has_points));
  return s_.ir.CreateSelect(nan, llvm::ConstantFP::getNaN(v.index->getType()), v.index);
}

Accumulator ReduceEmitter::start(ScalarId id, int lanes) {
  const Scalar& reduce = s_.scalar(id);
  llvm::Type* type = s_.widened(s_.register_type(operand_dtype(reduce)), lanes);
  Accumulator out{.reduce = id, .lanes = lanes, .value = slot(type)};
  s_.ir.CreateStore(identity(reduce, type), out.value);
  if (is_arg(reduce.combine)) {
    llvm::Type* indices = s_.widened(s_.ir.getInt64Ty(), lanes);
    out.index = slot(indices);
    s_.ir.CreateStore(llvm::ConstantInt::get(indices, kNoIndex), out.index);
  }
  if (is_joined(reduce)) {
    for (llvm::AllocaInst** part : {&out.index, &out.base}) {
      *part = slot(type);
      s_.ir.CreateStore(llvm::Constant::getNullValue(type), *part);
    }
  }
  for (int level = 0; wants_runs(s_.kernel, id) && level < s_.sum_levels; ++level) {
    out.totals.push_back(slot(type));
    s_.ir.CreateStore(identity(reduce, type), out.totals.back());
  }
  return out;
}

// Whether b wins over a: greater, or NaN against a number, or equal (both NaN) at a smaller index.
Value* ReduceEmitter::beats(const Scalar& reduce, Pair a, Pair b, Ties ties_go) {
  const DType dtype = operand_dtype(reduce);
  const bool greatest = wants_greatest(reduce.combine);
  Value *wins, *ties = nullptr;
  if (is_float(dtype)) {
    Value* a_nan = s_.ir.CreateFCmpUNO(a.value, a.value);
    Value* b_nan = s_.ir.CreateFCmpUNO(b.value, b.value);
    wins = greatest ? s_.ir.CreateFCmpOGT(b.value, a.value) : s_.ir.CreateFCmpOLT(b.value, a.value);
    wins = s_.ir.CreateOr(wins, s_.ir.CreateAnd(b_nan, s_.ir.CreateNot(a_nan)));
    if (ties_go == Ties::ComeLater) return wins;
    ties = s_.ir.CreateOr(s_.ir.CreateFCmpOEQ(a.value, b.value), s_.ir.CreateAnd(a_nan, b_nan));
  } else {
    const bool u = is_unsigned(dtype);
    if (greatest)
      wins = u ? s_.ir.CreateICmpUGT(b.value, a.value) : s_.ir.CreateICmpSGT(b.value, a.value);
    else
      wins = u ? s_.ir.CreateICmpULT(b.value, a.value) : s_.ir.CreateICmpSLT(b.value, a.value);
    if (ties_go == Ties::ComeLater) return wins;
    ties = s_.ir.CreateICmpEQ(a.value, b.value);
  }
  return s_.ir.CreateOr(wins, s_.ir.CreateAnd(ties, s_.ir.CreateICmpSLT(b.index, a.index)));
}

ReduceEmitter::Pair ReduceEmitter::combine(const Scalar& reduce, Pair a, Pair b, Ties ties) {
  const DType dtype = operand_dtype(reduce);
  if (is_joined(reduce)) return combine_joined(reduce, a, b);
  switch (reduce.combine) {
    case Combine::Sum:
      return {is_float(dtype) ? s_.ir.CreateFAdd(a.value, b.value) : s_.ir.CreateAdd(a.value, b.value), nullptr};
    case Combine::Prod:
      return {is_float(dtype) ? s_.ir.CreateFMul(a.value, b.value) : s_.ir.CreateMul(a.value, b.value), nullptr};
    case Combine::Any:
      return {s_.ir.CreateOr(a.value, b.value), nullptr};
    case Combine::All:
      return {s_.ir.CreateAnd(a.value, b.value), nullptr};
    case Combine::Max:
    case Combine::Min:
      return {scalars_.extreme(wants_greatest(reduce.combine), dtype, a.value, b.value), nullptr};
    case Combine::ArgMax:
    case Combine::ArgMin: {
      Value* b_wins = beats(reduce, a, b, ties);
      return {s_.ir.CreateSelect(b_wins, b.value, a.value), s_.ir.CreateSelect(b_wins, b.index, a.index)};
    }
  }
  CRESSET_CHECK(false, "unknown combine");
}

void ReduceEmitter::fold(const Accumulator& acc, Value* position) {
  const Scalar& reduce = s_.scalar(acc.reduce);
  if (is_joined(reduce)) return fold_joined(acc);
  const bool arg = is_arg(reduce.combine);
  Pair old{s_.ir.CreateLoad(acc.value->getAllocatedType(), acc.value), nullptr};
  Pair next{s_.splat(s_.value(reduce.a)), nullptr};
  if (acc.lanes == 1 && EmitState::is_vector(next.value)) CRESSET_CHECK(false, "lanes folded into a plain accumulator");
  if (arg) {
    old.index = s_.ir.CreateLoad(acc.index->getAllocatedType(), acc.index);
    next.index = s_.splat(position);
  }
  // In a single loop a lane's positions grow, so ties keep the earlier index. A value which does not beat the identity
  // gets no index. If no value beats it, the first position is the answer.
  const bool in_order = s_.plan.loops.size() == s_.plan.first_inner() + 1;
  // Masked lanes get the identity where this is exact and cheap, else they keep the old value.
  Pair folded = combine(reduce, old, next, in_order ? Ties::ComeLater : Ties::GoToTheFirst);
  if (s_.mask != nullptr) {
    folded.value = s_.ir.CreateSelect(s_.mask, folded.value, old.value);
    if (arg) folded.index = s_.ir.CreateSelect(s_.mask, folded.index, old.index);
  }
  s_.ir.CreateStore(folded.value, acc.value);
  if (arg) s_.ir.CreateStore(folded.index, acc.index);
}

void ReduceEmitter::end_run(const Accumulator& acc, size_t level) {
  if (level >= acc.totals.size()) return;
  llvm::Type* type = acc.value->getAllocatedType();
  llvm::AllocaInst* from = level == 0 ? acc.value : acc.totals[level - 1];
  Value* total = s_.ir.CreateLoad(type, acc.totals[level]);
  s_.ir.CreateStore(s_.ir.CreateFAdd(total, s_.ir.CreateLoad(type, from)), acc.totals[level]);
  s_.ir.CreateStore(llvm::Constant::getNullValue(type), from);
}

ReduceEmitter::Pair ReduceEmitter::read(const Accumulator& acc) {
  for (size_t level = 0; level < acc.totals.size(); ++level) end_run(acc, level);
  llvm::AllocaInst* from = acc.totals.empty() ? acc.value : acc.totals.back();
  Pair out{s_.ir.CreateLoad(from->getAllocatedType(), from), nullptr};
  if (acc.index != nullptr) out.index = s_.ir.CreateLoad(acc.index->getAllocatedType(), acc.index);
  return out;
}

ReduceEmitter::Pair ReduceEmitter::halve(const Scalar& reduce, Pair v) {
  const int lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(v.value->getType())->getNumElements());
  auto half = [&](Value* whole, int start) -> Value* {
    if (whole == nullptr) return nullptr;
    if (lanes == 2) return s_.ir.CreateExtractElement(whole, static_cast<uint64_t>(start));
    std::vector<int> order;
    for (int i = 0; i < lanes / 2; ++i) order.push_back(start + i);
    return s_.ir.CreateShuffleVector(whole, order);
  };
  return combine(reduce, {half(v.value, 0), half(v.index, 0)}, {half(v.value, lanes / 2), half(v.index, lanes / 2)});
}

// Reduces over all lanes: the best value, NaN before all numbers, and the least index at which it occurs.
ReduceEmitter::Pair ReduceEmitter::first_of_the_best(const Scalar& reduce, Pair v) {
  const DType dtype = operand_dtype(reduce);
  const bool greatest = wants_greatest(reduce.combine);
  Value *best, *among;
  if (is_float(dtype)) {
    Value* nan = s_.ir.CreateFCmpUNO(v.value, v.value);
    Value* any_nan = s_.ir.CreateOrReduce(nan);
    llvm::FastMathFlags flags;
    flags.setNoNaNs();  // if a NaN is among them, this result is unused
    flags.setNoSignedZeros();
    llvm::IRBuilder<>::FastMathFlagGuard guard(s_.ir);
    s_.ir.setFastMathFlags(flags);
    best = greatest ? s_.ir.CreateFPMaxReduce(v.value) : s_.ir.CreateFPMinReduce(v.value);
    s_.ir.clearFastMathFlags();
    among = s_.ir.CreateSelect(any_nan, nan, s_.ir.CreateFCmpOEQ(v.value, s_.splat_like(v.value, best)));
    best = s_.ir.CreateSelect(any_nan, llvm::ConstantFP::getNaN(best->getType()), best);
  } else {
    const bool is_signed = !is_unsigned(dtype);
    best = greatest ? s_.ir.CreateIntMaxReduce(v.value, is_signed) : s_.ir.CreateIntMinReduce(v.value, is_signed);
    among = s_.ir.CreateICmpEQ(v.value, s_.splat_like(v.value, best));
  }
  Value* index = s_.ir.CreateSelect(among, v.index, s_.constant_int_like(v.index, kNoIndex));
  return {best, s_.ir.CreateIntMinReduce(index, /*IsSigned=*/true)};
}

Value* ReduceEmitter::result(ScalarId id, Pair v) {
  if (!is_arg(s_.scalar(id).combine)) return v.value;
  Value* none = s_.ir.CreateICmpEQ(v.index, s_.constant_int_like(v.index, kNoIndex));
  return s_.ir.CreateSelect(none, s_.constant_int_like(v.index, 0), v.index);
}

ReduceEmitter::Pair ReduceEmitter::across_lanes(const std::vector<Accumulator>& parts) {
  const Scalar& reduce = s_.scalar(parts[0].reduce);
  Pair all = read(parts[0]);  // the widest comes first
  int lanes = parts[0].lanes;
  for (size_t i = 1; i < parts.size(); ++i) {
    for (; lanes > parts[i].lanes; lanes /= 2) all = halve(reduce, all);
    all = combine(reduce, all, read(parts[i]));
  }
  if (is_arg(reduce.combine) && lanes > 1) return first_of_the_best(reduce, all);
  for (; lanes > 1; lanes /= 2) all = halve(reduce, all);
  return all;
}

ReduceEmitter::Pair ReduceEmitter::identity(ScalarId id, int lanes) {
  const Scalar& reduce = s_.scalar(id);
  Pair out{identity(reduce, s_.widened(s_.register_type(operand_dtype(reduce)), lanes)), nullptr};
  if (is_arg(reduce.combine)) out.index = llvm::ConstantInt::get(s_.widened(s_.ir.getInt64Ty(), lanes), kNoIndex);
  if (is_joined(reduce)) out.index = llvm::Constant::getNullValue(out.value->getType());
  return out;
}

void ReduceEmitter::put(const Accumulator& acc, Pair v) {
  Pair old{s_.ir.CreateLoad(acc.value->getAllocatedType(), acc.value), nullptr};
  if (acc.index != nullptr) old.index = s_.ir.CreateLoad(acc.index->getAllocatedType(), acc.index);
  const Pair all = combine(s_.scalar(acc.reduce), old, v);
  s_.ir.CreateStore(all.value, acc.value);
  if (acc.index != nullptr) s_.ir.CreateStore(all.index, acc.index);
}

}  // namespace cresset::codegen
