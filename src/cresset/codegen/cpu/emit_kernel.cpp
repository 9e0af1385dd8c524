#include "codegen/cpu/emit_kernel.h"

#include <algorithm>

namespace cresset::codegen::cpu {

using llvm::BasicBlock;
using llvm::Value;

namespace {

constexpr int64_t kRunLength = 64;  // consecutive additions before a running sum is moved to a total

}  // namespace

KernelEmitter::KernelEmitter(const loop::Kernel& kernel, const Schedule& schedule, const EmitOptions& options,
                             llvm::Module& module)
    : kernel_(kernel),
      schedule_(schedule),
      s_(kernel, schedule, module),
      index_(s_),
      memory_(s_, index_),
      machine_(s_, index_, memory_),
      scalars_(s_, index_, machine_),
      reduces_(s_, scalars_) {
  unroll_ = schedule.unroll;
  s_.sum_levels = schedule.sum_levels;
  s_.resolver = options.resolver;
  s_.vector_bits = options.vector_bits;
  s_.has_fma = options.has_fma;
  s_.has_scalef = options.has_scalef;
  s_.has_bf16 = options.has_bf16;
}

namespace {

// Iterations of a loop whose bounds are constants, otherwise -1.
int64_t constant_trips(Value* begin, Value* end, Value* step) {
  const auto* b = llvm::dyn_cast<llvm::ConstantInt>(begin);
  const auto* e = llvm::dyn_cast<llvm::ConstantInt>(end);
  const auto* s = llvm::dyn_cast<llvm::ConstantInt>(step);
  if (b == nullptr || e == nullptr || s == nullptr) return -1;
  const int64_t distance = e->getSExtValue() - b->getSExtValue();
  return distance <= 0 ? 0 : (distance + s->getSExtValue() - 1) / s->getSExtValue();
}

}  // namespace

void KernelEmitter::for_loop(Value* begin, Value* end, Value* step, const Body& body) {
  const int64_t trips = constant_trips(begin, end, step);
  if (trips == 0) return;
  const size_t scope = index_.scope();
  if (trips == 1) return body(begin), index_.leave(scope);
  llvm::Function* function = s_.ir.GetInsertBlock()->getParent();
  BasicBlock* before = s_.ir.GetInsertBlock();
  BasicBlock* inside = BasicBlock::Create(s_.ir.getContext(), "loop", function);
  BasicBlock* after = BasicBlock::Create(s_.ir.getContext(), "done", function);
  s_.ir.CreateCondBr(s_.ir.CreateICmpSLT(begin, end), inside, after);
  s_.ir.SetInsertPoint(inside);
  llvm::PHINode* i = s_.ir.CreatePHI(s_.ir.getInt64Ty(), 2);
  i->addIncoming(begin, before);
  body(i);
  index_.leave(scope);
  Value* next = s_.ir.CreateAdd(i, step, "", /*HasNUW=*/true, /*HasNSW=*/true);
  i->addIncoming(next, s_.ir.GetInsertBlock());
  s_.ir.CreateCondBr(s_.ir.CreateICmpSLT(next, end), inside, after);
  s_.ir.SetInsertPoint(after);
}

bool KernelEmitter::runs_wanted() const {
  return std::any_of(accumulators_.begin(), accumulators_.end(),
                     [](const Accumulator& a) { return !a.totals.empty(); });
}

// An innermost loop. With float sums it is cut into runs, after which the sums of `lanes` lanes are added to totals.
void KernelEmitter::for_runs(Value* begin, Value* end, int64_t step, int lanes, const Body& body) {
  const int64_t trips = constant_trips(begin, end, s_.i64(step));
  const bool is_short = trips >= 0 && trips <= kRunLength;
  if (!runs_wanted() || is_short) return for_loop(begin, end, s_.i64(step), body);
  const int64_t run = step * kRunLength;
  auto cut = [&](Value* from, Value* to, int64_t length, size_t level,
                 const std::function<void(Value*, Value*)>& inside) {
    for_loop(from, to, s_.i64(length), [&](Value* start) {
      inside(start, s_.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, s_.ir.CreateAdd(start, s_.i64(length)), to));
      end_runs(lanes, level);
    });
  };
  auto one_run = [&](Value* from, Value* to) { for_loop(from, to, s_.i64(step), body); };
  auto runs = [&](Value* from, Value* to) { cut(from, to, run, 0, one_run); };
  if (schedule_.sum_levels == 1) return runs(begin, end);
  cut(begin, end, run * kRunLength, 1, runs);
}

void KernelEmitter::end_runs(int lanes, size_t level) {
  for (const Accumulator& accumulator : accumulators_)
    if (accumulator.lanes == lanes) reduces_.end_run(accumulator, level);
}

void KernelEmitter::with_lanes(int lanes, Value* mask, const std::function<void()>& body) {
  const int lanes_before = s_.lanes;
  Value* mask_before = s_.mask;
  s_.lanes = lanes;
  s_.mask = mask;
  body();
  s_.lanes = lanes_before;
  s_.mask = mask_before;
}

Value* KernelEmitter::tail_mask(Value* start, Value* end, int lanes) {
  if (lanes == 1) return nullptr;
  const int before = s_.lanes;
  s_.lanes = lanes;
  Value* left = s_.splat(
      s_.ir.CreateTrunc(s_.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, s_.ir.CreateSub(end, start), s_.i64(lanes)),
                        s_.ir.getInt32Ty()));
  Value* lane = s_.ir.CreateTrunc(s_.iota(), left->getType());
  s_.lanes = before;
  return s_.ir.CreateICmpSLT(lane, left);
}

void KernelEmitter::prologue(llvm::Function* function) {
  Value* buffers = function->getArg(0);
  Value* symbols = function->getArg(1);
  s_.scratch = function->getArg(4);
  BasicBlock& entry = function->getEntryBlock();
  s_.zeros = llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(s_.ir.getInt64Ty());
  s_.ir.CreateStore(s_.i64(0), s_.zeros);
  llvm::Type* pointer = s_.ir.getPtrTy();
  for (size_t i = 0; i < kernel_.buffers.size(); ++i)
    s_.buffers.push_back(s_.ir.CreateLoad(pointer, s_.ir.CreateConstGEP1_64(pointer, buffers, i)));
  const std::vector<VarId> order = kernel_.size_symbols();
  for (size_t i = 0; i < order.size(); ++i)
    s_.vars[order[i]] = s_.ir.CreateLoad(s_.ir.getInt64Ty(), s_.ir.CreateConstGEP1_64(s_.ir.getInt64Ty(), symbols, i));
  for (const Loop& loop : schedule_.loops) extents_.push_back(index_.emit(loop.extent));
}

void KernelEmitter::emit(const std::string& name) {
  llvm::Type* pointer = s_.ir.getPtrTy();
  llvm::Type* i64 = s_.ir.getInt64Ty();
  auto* type = llvm::FunctionType::get(s_.ir.getVoidTy(), {pointer, pointer, i64, i64, pointer}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, s_.module);
  function->setDoesNotThrow();
  BasicBlock* entry = BasicBlock::Create(s_.ir.getContext(), "entry", function);
  BasicBlock* start = BasicBlock::Create(s_.ir.getContext(), "start", function);
  BasicBlock* nothing = BasicBlock::Create(s_.ir.getContext(), "nothing", function);
  s_.ir.SetInsertPoint(entry);  // without items even loop-invariant loads may be out of bounds
  s_.ir.CreateCondBr(s_.ir.CreateICmpSLT(function->getArg(2), function->getArg(3)), start, nothing);
  s_.ir.SetInsertPoint(nothing);
  s_.ir.CreateRetVoid();
  s_.ir.SetInsertPoint(start);
  prologue(function);
  compute_level(0, 0);
  const Short rows = short_rows();
  if (rows == Short::Never) return items(function->getArg(2), function->getArg(3));
  BasicBlock* any = BasicBlock::Create(s_.ir.getContext(), "any", function);
  BasicBlock* brief = BasicBlock::Create(s_.ir.getContext(), "short", function);
  s_.ir.CreateCondBr(s_.ir.CreateICmpSLE(extent(schedule_.vector), s_.i64(schedule_.width)), brief, any);
  s_.ir.SetInsertPoint(brief);
  is_short_ = true;
  unroll_ = 1;
  items(function->getArg(2), function->getArg(3));
  is_short_ = false;
  unroll_ = schedule_.unroll;
  s_.ir.SetInsertPoint(any);
  if (rows == Short::Always)
    s_.ir.CreateUnreachable();
  else
    items(function->getArg(2), function->getArg(3));
}

// Rows of a few elements: a single vector under a mask shared by all rows, without loops. Kernels for any number of
// elements get this form in addition, unless their only form is masked and long.
KernelEmitter::Short KernelEmitter::short_rows() const {
  if (schedule_.has_tile() || schedule_.width == 1 || schedule_.loops.size() == 1) return Short::Never;
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(extents_[schedule_.vector]))
    return known->getSExtValue() <= schedule_.width ? Short::Always : Short::Never;
  return schedule_.masked ? Short::Never : Short::Sometimes;
}

void KernelEmitter::items(Value* begin, Value* end) {
  const size_t scope = index_.scope();
  start_items(begin);
  for_loop(begin, end, s_.i64(1), [&](Value*) {
    item();
    next_item();
  });
  s_.ir.CreateRetVoid();
  index_.leave(scope);
}

// The digits of a work item's number, fastest first: blocks of an outer vector loop, blocks of the tile loop, the other
// outer loops from the last.
void KernelEmitter::start_items(Value* first) {
  digits_.clear();
  const Loop& vector = schedule_.loops[schedule_.vector];
  auto add = [&](size_t loop, int64_t step) {
    Value* count = extent(loop);
    if (step != 1) count = s_.ir.CreateUDiv(s_.ir.CreateAdd(count, s_.i64(step - 1)), s_.i64(step));
    count = s_.ir.CreateBinaryIntrinsic(llvm::Intrinsic::umax, count, s_.i64(1));
    digits_.push_back({loop, step, count, reduces_.slot(s_.ir.getInt64Ty())});
  };
  if (!vector.inner && !is_short_) add(schedule_.vector, schedule_.block);
  if (schedule_.has_tile()) add(schedule_.tile, schedule_.tile_block);
  for (size_t k = vector.inner ? schedule_.first_inner() : schedule_.vector; k-- > 0;)
    if (k != schedule_.tile) add(k, 1);
  for (const Digit& digit : digits_) {
    const bool last = &digit == &digits_.back();
    s_.ir.CreateStore(last ? first : s_.ir.CreateURem(first, digit.count), digit.value);
    if (!last) first = s_.ir.CreateUDiv(first, digit.count);
  }
}

// Advances to the next item by carries, since divisions would cost more than short rows.
void KernelEmitter::next_item() {
  Value* carry = s_.i64(1);
  for (const Digit& digit : digits_) {
    Value* next = s_.ir.CreateAdd(s_.ir.CreateLoad(s_.ir.getInt64Ty(), digit.value), carry);
    const bool last = &digit == &digits_.back();
    Value* wraps = last ? s_.ir.getFalse() : s_.ir.CreateICmpEQ(next, digit.count);
    s_.ir.CreateStore(s_.ir.CreateSelect(wraps, s_.i64(0), next), digit.value);
    carry = s_.ir.CreateZExt(wraps, s_.ir.getInt64Ty());
  }
}

void KernelEmitter::item() {
  const Loop& vector = schedule_.loops[schedule_.vector];
  Value *begin = nullptr, *end = nullptr;
  for (const Digit& digit : digits_) {
    Value* v = s_.ir.CreateLoad(s_.ir.getInt64Ty(), digit.value);
    if (digit.step != 1) v = s_.ir.CreateMul(v, s_.i64(digit.step));
    s_.vars[schedule_.loops[digit.loop].var] = v;
    if (digit.loop == schedule_.vector) begin = v;
  }
  if (is_short_ && !vector.inner) begin = s_.i64(0), end = extent(schedule_.vector);
  if (begin != nullptr && !is_short_) {
    s_.vars.erase(vector.var);
    Value* block = s_.i64(schedule_.block);
    end = s_.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, s_.ir.CreateAdd(begin, block), extent(schedule_.vector));
  }
  compute_level(1, 0);
  if (vector.inner) return row();
  if (schedule_.has_tile()) return tiles(begin, end);
  vector_outer(begin, end);
}

void KernelEmitter::vector_outer(Value* begin, Value* end) {
  const VarId var = schedule_.loops[schedule_.vector].var;
  auto run = [&](Value* v, int lanes, Value* mask) {
    s_.vars[var] = v;
    with_lanes(lanes, mask, [&] {
      compute_level(2, 0);
      row();
    });
  };
  const int wide = wide_lanes();
  if (is_short_) return run(begin, wide, tail_mask(begin, end, wide));
  if (schedule_.masked) {
    for_loop(begin, end, s_.i64(wide), [&](Value* v) { run(v, wide, tail_mask(v, end, wide)); });
    return;
  }
  Value* whole = s_.ir.CreateSub(end, s_.ir.CreateAnd(s_.ir.CreateSub(end, begin), s_.i64(wide - 1)));
  for_loop(begin, whole, s_.i64(wide), [&](Value* v) { run(v, wide, nullptr); });
  if (wide == 1) return;
  const int width = schedule_.width;
  for_loop(whole, end, s_.i64(width), [&](Value* v) { run(v, width, tail_mask(v, end, width)); });
}

void KernelEmitter::row() {
  const uint16_t depth = schedule_.row_depth();
  for (uint16_t pass = 0; pass < schedule_.analysis.stages; ++pass) {
    reduction_pass(pass);
    compute_level(depth, static_cast<uint16_t>(pass + 1));
  }
  store_pass();
}

void KernelEmitter::reduction_pass(uint16_t pass) {
  std::vector<ScalarId> reduces;
  for (uint32_t i = 0; i < kernel_.scalars.size(); ++i)
    if (schedule_.live[i] && kernel_.scalars[i].op == loop::Op::Reduce && schedule_.analysis.stage[i] == pass + 1)
      reduces.push_back({i});
  accumulators_.clear();
  const bool inner = schedule_.vector_is_inner();
  for (ScalarId id : reduces) {
    accumulators_.push_back(reduces_.start(id, inner ? wide_lanes() : s_.lanes));
    if (inner && unroll_ > 1) accumulators_.push_back(reduces_.start(id, schedule_.width));
  }
  inner_nest(schedule_.first_inner(), pass);
  for (ScalarId id : reduces) {
    std::vector<Accumulator> parts;
    for (const Accumulator& a : accumulators_)
      if (a.reduce == id) parts.push_back(a);
    s_.values[id.index] = reduces_.result(id, inner ? reduces_.across_lanes(parts) : reduces_.in_lanes(parts[0]));
  }
  accumulators_.clear();
}

void KernelEmitter::store_pass() {
  const auto& in_row = schedule_.store_in_row;
  const bool any_inside = std::any_of(in_row.begin(), in_row.end(), [](uint8_t row) { return row == 0; });
  if (any_inside) inner_nest(schedule_.first_inner(), schedule_.analysis.stages);
  for (size_t i = 0; i < kernel_.stores.size(); ++i)
    if (in_row[i]) memory_.store(kernel_.stores[i], schedule_.store_index[i]);
}

void KernelEmitter::inner_nest(size_t k, uint16_t pass) {
  if (k == schedule_.loops.size()) return body(pass);
  if (k == schedule_.vector) return vector_loop(k, pass);
  sequential_loop(k, pass);
}

void KernelEmitter::sequential_loop(size_t k, uint16_t pass) {
  auto inside = [&](Value* i) {
    s_.vars[schedule_.loops[k].var] = i;
    compute_inside(schedule_.loop_depth(k), pass);
    inner_nest(k + 1, pass);
  };
  if (k + 1 == schedule_.loops.size()) return for_runs(s_.i64(0), extent(k), 1, s_.lanes, inside);
  for_loop(s_.i64(0), extent(k), s_.i64(1), inside);
}

// The innermost loop: whole vectors in the main loop, the remainder under a mask.
void KernelEmitter::vector_loop(size_t k, uint16_t pass) {
  const int wide = wide_lanes(), width = schedule_.width;
  auto inside = [&](Value* v, int lanes, Value* mask) {
    s_.vars[schedule_.loops[k].var] = v;
    with_lanes(lanes, mask, [&] {
      compute_inside(schedule_.loop_depth(k), pass);
      body(pass);
    });
  };
  if (is_short_) return inside(s_.i64(0), width, tail_mask(s_.i64(0), extent(k), width));
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(extent(k));
  const bool has_tail = known == nullptr || known->getSExtValue() % wide != 0;
  if (schedule_.masked && has_tail) {
    for_runs(s_.i64(0), extent(k), wide, wide, [&](Value* v) { inside(v, wide, tail_mask(v, extent(k), wide)); });
    return;
  }
  Value* whole = s_.ir.CreateAnd(extent(k), s_.i64(-wide));
  for_runs(s_.i64(0), whole, wide, wide, [&](Value* v) { inside(v, wide, nullptr); });
  if (wide == 1) return;
  for_loop(whole, extent(k), s_.i64(width), [&](Value* v) { inside(v, width, tail_mask(v, extent(k), width)); });
  end_runs(width, 0);
}

void KernelEmitter::body(uint16_t pass) {
  if (pass < schedule_.analysis.stages) {
    Value* position = nullptr;
    if (schedule_.position.expr.valid()) position = index_.emit(schedule_.position);
    for (const Accumulator& accumulator : accumulators_)
      if (accumulator.lanes == s_.lanes) reduces_.fold(accumulator, position);
    return;
  }
  for (size_t i = 0; i < kernel_.stores.size(); ++i)
    if (!schedule_.store_in_row[i]) memory_.store(kernel_.stores[i], schedule_.store_index[i]);
}

Value* KernelEmitter::compute(ScalarId id) {
  if (!schedule_.tiled[id.index]) return scalars_.emit(id);
  const DType dtype = kernel_.buffers[kernel_[id].buffer.index].dtype;
  llvm::Type* type = s_.widened(s_.memory_type(dtype), schedule_.width);
  Value* pointer = s_.ir.CreateGEP(type, tile_memory_[id.index], tile_row_);
  return memory_.from_memory(
      dtype, s_.ir.CreateAlignedLoad(type, pointer, llvm::Align(static_cast<uint64_t>(byte_size(dtype)))));
}

void KernelEmitter::compute_level(uint16_t depth, uint16_t stage) {
  if (depth <= 1 && stage == 0) index_.prepare(depth);  // hoisted here, because LLVM would have to prove it
  for (uint32_t i = 0; i < kernel_.scalars.size(); ++i) {
    if (!schedule_.live[i] || schedule_.depth[i] != depth || schedule_.analysis.stage[i] != stage) continue;
    if (kernel_.scalars[i].op != loop::Op::Reduce) s_.values[i] = compute({i});
  }
}

void KernelEmitter::compute_inside(uint16_t depth, uint16_t pass) {
  const std::vector<uint8_t>& needed = schedule_.needed[pass];
  for (uint32_t i = 0; i < kernel_.scalars.size(); ++i) {
    if (!needed[i] || schedule_.depth[i] != depth) continue;
    const auto spill = std::find(schedule_.spilled.begin(), schedule_.spilled.end(), ScalarId{i});
    if (spill == schedule_.spilled.end()) {
      s_.values[i] = scalars_.emit({i});
      continue;
    }
    const size_t which = static_cast<size_t>(spill - schedule_.spilled.begin());
    const llvm::Align align(static_cast<uint64_t>(byte_size(kernel_.scalars[i].dtype)));
    llvm::Type* type = s_.widened(s_.register_type(kernel_.scalars[i].dtype), s_.lanes);
    if (pass > schedule_.spilled_first[which]) {
      s_.values[i] = s_.ir.CreateAlignedLoad(type, spill_pointer(which), align);
      continue;
    }
    s_.values[i] = s_.splat(scalars_.emit({i}));
    s_.ir.CreateAlignedStore(s_.values[i], spill_pointer(which), align);
  }
}

// Scratch contains the spilled scalars one after another. Each has 8 bytes for each (inner point, lane of an outer
// vector loop), and room to write the last vector as a whole.
Value* KernelEmitter::spill_pointer(size_t which) {
  const ScalarId id = schedule_.spilled[which];
  Value* slots = s_.i64(1);
  for (size_t k = schedule_.first_inner(); k < schedule_.loops.size(); ++k) slots = s_.ir.CreateMul(slots, extent(k));
  Value* position = inner_position(schedule_.depth[id.index]);
  if (schedule_.vector_is_inner()) {
    slots = s_.ir.CreateAdd(slots, s_.i64(wide_lanes()));
  } else {
    slots = s_.ir.CreateMul(slots, s_.i64(wide_lanes()));
    position = s_.ir.CreateMul(position, s_.i64(wide_lanes()));
  }
  Value* base =
      s_.ir.CreateGEP(s_.ir.getInt64Ty(), s_.scratch, s_.ir.CreateMul(slots, s_.i64(static_cast<int64_t>(which))));
  return s_.ir.CreateGEP(s_.register_type(kernel_[id].dtype), base, position);
}

// Row-major position in nest order; loops deeper than `depth` count as at 0.
Value* KernelEmitter::inner_position(uint16_t depth) {
  Value* position = s_.i64(0);
  for (size_t k = schedule_.first_inner(); k < schedule_.loops.size(); ++k) {
    position = s_.ir.CreateMul(position, extent(k));
    if (schedule_.loop_depth(k) <= depth) position = s_.ir.CreateAdd(position, s_.vars.at(schedule_.loops[k].var));
  }
  return position;
}

void emit_kernel(const loop::Kernel& kernel, const Schedule& schedule, const EmitOptions& options,
                 const std::string& name, llvm::Module& module) {
  KernelEmitter(kernel, schedule, options, module).emit(name);
}

}  // namespace cresset::codegen::cpu
