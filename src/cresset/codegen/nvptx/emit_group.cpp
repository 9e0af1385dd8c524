#include "codegen/nvptx/emit_group.h"

namespace cresset::codegen::nvptx {

using llvm::Value;

namespace {

constexpr int kWarp = 32;
constexpr int64_t kWarps = 32;  // of a block

}  // namespace

Value* GroupEmitter::shuffled_word(Value* word, Shuffle kind, Value* by) {
  Value* everyone = s_.ir.getInt32(0xffffffff);
  switch (kind) {
    case Shuffle::Butterfly:
      return s_.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
                                   {everyone, word, by, s_.ir.getInt32(31)});
    case Shuffle::Up:
      return s_.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_up_i32, {}, {everyone, word, by, s_.ir.getInt32(0)});
    case Shuffle::Index:
      return s_.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, {},
                                   {everyone, word, by, s_.ir.getInt32(31)});
  }
  CRESSET_CHECK(false, "unknown shuffle");
}

// The value of another thread of the warp.
Value* GroupEmitter::shuffled(Value* v, Shuffle kind, Value* by) {
  llvm::Type* type = v->getType();
  Value* word = as_word(v);
  const auto part = [&](Value* w) { return shuffled_word(s_.ir.CreateTrunc(w, s_.ir.getInt32Ty()), kind, by); };
  if (type->getScalarSizeInBits() <= 32) return from_word(s_.ir.CreateZExt(part(word), s_.ir.getInt64Ty()), type);
  Value* low = part(word);
  Value* high = s_.ir.CreateShl(s_.ir.CreateZExt(part(s_.ir.CreateLShr(word, 32)), s_.ir.getInt64Ty()), 32);
  return from_word(s_.ir.CreateOr(high, s_.ir.CreateZExt(low, s_.ir.getInt64Ty())), type);
}

Value* GroupEmitter::as_word(Value* v) {
  llvm::Type* type = v->getType();
  if (type->isFloatingPointTy()) v = s_.ir.CreateBitCast(v, s_.ir.getIntNTy(type->getScalarSizeInBits()));
  return s_.ir.CreateZExt(v, s_.ir.getInt64Ty());
}

Value* GroupEmitter::from_word(Value* word, llvm::Type* type) {
  Value* bits = s_.ir.CreateTrunc(word, s_.ir.getIntNTy(type->getScalarSizeInBits()));
  return type->isFloatingPointTy() ? s_.ir.CreateBitCast(bits, type) : bits;
}

GroupEmitter::Pair GroupEmitter::butterfly(const loop::Scalar& reduce, Pair v) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    Value* by = s_.ir.getInt32(static_cast<uint32_t>(distance));
    const Pair other{shuffled(v.value, Shuffle::Butterfly, by),
                     v.index == nullptr ? nullptr : shuffled(v.index, Shuffle::Butterfly, by)};
    const Pair all = reduces_.combine(reduce, v, other);
    // Of a part of a warp, the next part belongs to another row.
    Value* same = s_.ir.CreateICmpUGT(s_.special(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x), by);
    v.value = s_.ir.CreateSelect(same, all.value, v.value);
    if (v.index != nullptr) v.index = s_.ir.CreateSelect(same, all.index, v.index);
  }
  return v;
}

llvm::GlobalVariable* GroupEmitter::shared(int64_t words) {
  auto* type = llvm::ArrayType::get(s_.ir.getInt64Ty(), static_cast<uint64_t>(words));
  if (shared_ != nullptr && shared_->getValueType()->getArrayNumElements() >= static_cast<uint64_t>(words))
    return shared_;
  auto* made = new llvm::GlobalVariable(s_.module, type, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage,
                                        llvm::PoisonValue::get(type), "shared", nullptr,
                                        llvm::GlobalValue::NotThreadLocal, kShared);
  made->setAlignment(llvm::Align(16));
  if (shared_ != nullptr) {
    shared_->replaceAllUsesWith(made);
    shared_->eraseFromParent();
  }
  return shared_ = made;
}

Value* GroupEmitter::slot(Value* memory, Value* at) { return s_.ir.CreateGEP(s_.ir.getInt64Ty(), memory, at); }

size_t GroupEmitter::words_of(const std::vector<Pair>& values) const {
  size_t words = 0;
  for (const Pair& v : values) words += v.index == nullptr ? 1 : 2;
  return words;
}

// The one or the other, by the block that control comes from.
GroupEmitter::Pair GroupEmitter::joined(Pair a, llvm::BasicBlock* from_a, Pair b, llvm::BasicBlock* from_b) {
  auto join = [&](Value* first, Value* second) -> Value* {
    if (first == nullptr) return nullptr;
    llvm::PHINode* out = s_.ir.CreatePHI(first->getType(), 2);
    out->addIncoming(first, from_a);
    out->addIncoming(second, from_b);
    return out;
  };
  return {join(a.value, b.value), join(a.index, b.index)};
}

// Within warps by shuffles; a group of more than a warp is a block, whose warps meet in shared memory.
void GroupEmitter::across_rows(const std::vector<ScalarId>& reduces, std::vector<Pair>& values) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = butterfly(s_.scalar(reduces[i]), values[i]);
  llvm::IRBuilder<>& ir = s_.ir;
  Value* group = s_.special(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x);
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = ir.GetInsertBlock();
  auto* several = llvm::BasicBlock::Create(ir.getContext(), "warps", function);
  auto* after = llvm::BasicBlock::Create(ir.getContext(), "met", function);
  ir.CreateCondBr(ir.CreateICmpUGT(group, ir.getInt32(kWarp)), several, after);

  ir.SetInsertPoint(several);
  Value* memory = shared(static_cast<int64_t>(words_of(values)) * kWarps);
  Value* thread = s_.special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  Value* lane = ir.CreateAnd(thread, 31);
  Value* warp = ir.CreateLShr(thread, 5);
  auto* first = llvm::BasicBlock::Create(ir.getContext(), "first", function);
  auto* told = llvm::BasicBlock::Create(ir.getContext(), "told", function);
  ir.CreateCondBr(ir.CreateICmpEQ(lane, ir.getInt32(0)), first, told);
  ir.SetInsertPoint(first);
  uint32_t word = 0;
  auto put = [&](Value* v) {
    ir.CreateStore(as_word(v), slot(memory, ir.CreateAdd(warp, ir.getInt32(kWarps * word++))));
  };
  for (const Pair& v : values) {
    put(v.value);
    if (v.index != nullptr) put(v.index);
  }
  ir.CreateBr(told);
  ir.SetInsertPoint(told);
  barrier();
  word = 0;
  Value* inside = ir.CreateICmpULT(lane, ir.CreateLShr(group, 5));
  Value* from = ir.CreateSelect(inside, lane, ir.getInt32(0));  // in bounds, and not looked at
  auto get = [&](llvm::Type* type) {
    return from_word(ir.CreateLoad(ir.getInt64Ty(), slot(memory, ir.CreateAdd(from, ir.getInt32(kWarps * word++)))),
                     type);
  };
  std::vector<Pair> met;
  for (size_t i = 0; i < values.size(); ++i) {
    const Pair none = reduces_.identity(reduces[i], 1);
    Pair v{ir.CreateSelect(inside, get(values[i].value->getType()), none.value), nullptr};
    if (values[i].index != nullptr) v.index = ir.CreateSelect(inside, get(values[i].index->getType()), none.index);
    met.push_back(butterfly(s_.scalar(reduces[i]), v));
  }
  barrier();  // before the next pass writes there
  llvm::BasicBlock* several_end = ir.GetInsertBlock();
  ir.CreateBr(after);

  ir.SetInsertPoint(after);
  for (size_t i = 0; i < values.size(); ++i) values[i] = joined(values[i], before, met[i], several_end);
}

// Each thread leaves its lanes in shared memory and takes up those of the threads above and below it.
void GroupEmitter::across_columns(const std::vector<ScalarId>& reduces, std::vector<Pair>& values) {
  llvm::IRBuilder<>& ir = s_.ir;
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  Value* rows = s_.special(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_y);
  llvm::BasicBlock* before = ir.GetInsertBlock();
  auto* several = llvm::BasicBlock::Create(ir.getContext(), "several", function);
  auto* after = llvm::BasicBlock::Create(ir.getContext(), "met", function);
  ir.CreateCondBr(ir.CreateICmpUGT(rows, ir.getInt32(1)), several, after);

  ir.SetInsertPoint(several);
  const auto lanes = static_cast<uint32_t>(s_.lanes);
  Value* memory = shared(int64_t{2} * kColumnsThreads * s_.lanes);  // one reduction at a time
  Value* x = s_.special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  Value* y = s_.special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y);
  Value* width = s_.special(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x);
  // Lane l of thread (x, y): neighbours along x lie side by side, so that no two use one bank.
  auto at = [&](Value* row, uint32_t lane, uint32_t which) {
    Value* place = ir.CreateAdd(ir.CreateMul(row, width), x);
    return slot(memory, ir.CreateAdd(place, ir.getInt32((which * lanes + lane) * kColumnsThreads)));
  };
  auto lane_of = [&](Value* v, uint32_t lane) {
    return EmitState::is_vector(v) ? ir.CreateExtractElement(v, lane) : v;
  };
  auto gather = [&](Value* row, llvm::Type* type, uint32_t which) {
    Value* out = llvm::PoisonValue::get(type);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      Value* v = from_word(ir.CreateLoad(ir.getInt64Ty(), at(row, lane, which)), type->getScalarType());
      out = lanes == 1 ? v : ir.CreateInsertElement(out, v, lane);
    }
    return out;
  };
  std::vector<Pair> met;
  for (size_t i = 0; i < values.size(); ++i) {
    const Pair& mine = values[i];
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      ir.CreateStore(as_word(lane_of(mine.value, lane)), at(y, lane, 0));
      if (mine.index != nullptr) ir.CreateStore(as_word(lane_of(mine.index, lane)), at(y, lane, 1));
    }
    barrier();
    llvm::Type* index_type = mine.index == nullptr ? nullptr : mine.index->getType();
    // In the order of rows for every thread: all get the same value.
    Pair all{gather(ir.getInt32(0), mine.value->getType(), 0),
             index_type == nullptr ? nullptr : gather(ir.getInt32(0), index_type, 1)};
    llvm::BasicBlock* start = ir.GetInsertBlock();
    auto* loop = llvm::BasicBlock::Create(ir.getContext(), "row", function);
    auto* done = llvm::BasicBlock::Create(ir.getContext(), "rows", function);
    ir.CreateBr(loop);
    ir.SetInsertPoint(loop);
    llvm::PHINode* row = ir.CreatePHI(ir.getInt32Ty(), 2);
    row->addIncoming(ir.getInt32(1), start);
    llvm::PHINode* value = ir.CreatePHI(all.value->getType(), 2);
    value->addIncoming(all.value, start);
    llvm::PHINode* index = nullptr;
    if (index_type != nullptr) {
      index = ir.CreatePHI(index_type, 2);
      index->addIncoming(all.index, start);
    }
    const Pair other{gather(row, mine.value->getType(), 0),
                     index_type == nullptr ? nullptr : gather(row, index_type, 1)};
    all = reduces_.combine(s_.scalar(reduces[i]), {value, index}, other);
    Value* next = ir.CreateAdd(row, ir.getInt32(1));
    row->addIncoming(next, ir.GetInsertBlock());
    value->addIncoming(all.value, ir.GetInsertBlock());
    if (index != nullptr) index->addIncoming(all.index, ir.GetInsertBlock());
    ir.CreateCondBr(ir.CreateICmpULT(next, rows), loop, done);
    ir.SetInsertPoint(done);
    barrier();
    met.push_back(all);
  }
  llvm::BasicBlock* several_end = ir.GetInsertBlock();
  ir.CreateBr(after);

  ir.SetInsertPoint(after);
  for (size_t i = 0; i < values.size(); ++i) values[i] = joined(values[i], before, met[i], several_end);
}

// By doubled distances.
GroupEmitter::Prefix GroupEmitter::scan_warp(ScalarId scan, Value* v, Value* lane, Value* last) {
  llvm::IRBuilder<>& ir = s_.ir;
  const loop::Scalar& scalar = s_.scalar(scan);
  for (uint32_t distance = 1; distance < uint32_t{kWarp}; distance *= 2) {
    Value* other = shuffled(v, Shuffle::Up, ir.getInt32(distance));
    Value* together = reduces_.combine(scalar, {other, nullptr}, {v, nullptr}).value;
    v = ir.CreateSelect(ir.CreateICmpUGE(lane, ir.getInt32(distance)), together, v);
  }
  Value* above = shuffled(v, Shuffle::Up, ir.getInt32(1));
  Value* before = ir.CreateSelect(ir.CreateICmpEQ(lane, ir.getInt32(0)), reduces_.identity(scan, 1).value, above);
  return {before, shuffled(v, Shuffle::Index, last)};
}

// Warps meet in shared memory: every warp scans the totals of all warps.
GroupEmitter::Prefix GroupEmitter::scan_rows(ScalarId scan, Value* v) {
  llvm::IRBuilder<>& ir = s_.ir;
  const loop::Scalar& scalar = s_.scalar(scan);
  Value* thread = s_.special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  Value* group = s_.special(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x);
  Value *lane = ir.CreateAnd(thread, 31), *warp = ir.CreateLShr(thread, 5);
  // The last thread of the row in this warp.
  Value* row = ir.CreateMul(s_.special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y), group);
  Value* part = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, group, ir.getInt32(kWarp));
  Value* last = ir.CreateOr(ir.CreateAnd(ir.CreateAdd(row, thread), 31), ir.CreateSub(part, ir.getInt32(1)));
  const Prefix own = scan_warp(scan, v, lane, last);
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  llvm::BasicBlock* from = ir.GetInsertBlock();
  auto* several = llvm::BasicBlock::Create(ir.getContext(), "warps", function);
  auto* after = llvm::BasicBlock::Create(ir.getContext(), "scanned", function);
  ir.CreateCondBr(ir.CreateICmpUGT(group, ir.getInt32(kWarp)), several, after);

  ir.SetInsertPoint(several);
  Value* memory = shared(kWarps);
  ir.CreateStore(as_word(own.all), slot(memory, warp));  // every thread of the warp stores the same word
  barrier();
  Value* exists = ir.CreateICmpULT(lane, ir.CreateLShr(group, 5));
  Value* word = ir.CreateLoad(ir.getInt64Ty(), slot(memory, ir.CreateSelect(exists, lane, ir.getInt32(0))));
  Value* total = ir.CreateSelect(exists, from_word(word, v->getType()), reduces_.identity(scan, 1).value);
  const Prefix warps = scan_warp(scan, total, lane, ir.getInt32(kWarp - 1));
  Value* before_warp = shuffled(warps.before, Shuffle::Index, warp);
  const Prefix met{reduces_.combine(scalar, {before_warp, nullptr}, {own.before, nullptr}).value, warps.all};
  barrier();  // before the next chunk writes there
  llvm::BasicBlock* several_end = ir.GetInsertBlock();
  ir.CreateBr(after);

  ir.SetInsertPoint(after);
  const Pair both = joined({own.before, own.all}, from, {met.before, met.all}, several_end);
  return {both.value, both.index};
}

}  // namespace cresset::codegen::nvptx
