#include "codegen/nvptx/emit_kernel.h"

#include <algorithm>
#include <bit>

namespace cresset::codegen::nvptx {

using llvm::BasicBlock;
using llvm::Value;
using loop::Op;
namespace Intrinsic = llvm::Intrinsic;

namespace {

constexpr int64_t kRounds = 4;      // chunks whose loads are on their way at once
constexpr int64_t kRunLength = 32;  // chunks after which a running sum moves to a total

bool is_wide(Variant variant) { return variant == Variant::Wide || variant == Variant::Kept; }

}  // namespace

size_t parameter_count(const loop::Kernel& kernel, const Schedule& schedule) {
  return kernel.buffers.size() + kernel.size_symbols().size() + schedule.divisors.size() + 2;
}

int most_threads(const Schedule& schedule, Variant variant) {
  if (variant == Variant::Kept) return most_kept_threads(schedule.lanes);
  return variant == Variant::Shared ? schedule.shared_threads() : kColumnsThreads;
}

const char* unsupported(const loop::Kernel& kernel, const Schedule& schedule) {
  for (size_t i = 0; i < kernel.scalars.size(); ++i) {
    const loop::Scalar& s = kernel.scalars[i];
    if (!schedule.live[i] || !GpuOps::is_function(s.op)) continue;
    if (!GpuOps::knows(s.op, s.dtype)) return to_string(s.op).data();
  }
  // Loops of scans have one order; a divided loop has lost it.
  if (!schedule.scans.empty() && schedule.loops.size() != schedule.first_inner() + 1) return to_string(Op::Scan).data();
  for (const loop::Store& s : kernel.stores)
    if (s.combine && !MemoryEmitter::can_update(kernel.buffers[s.buffer.index].dtype, *s.combine))
      return to_string(*s.combine).data();
  return nullptr;
}

KernelEmitter::KernelEmitter(const loop::Kernel& kernel, const Schedule& schedule, Variant variant,
                             llvm::Module& module)
    : kernel_(kernel),
      schedule_(schedule),
      variant_(variant),
      lanes_(is_wide(variant) ? schedule.lanes : 1),
      s_(kernel, schedule, module),
      index_(s_),
      memory_(s_, index_),
      machine_(s_, index_, memory_),
      scalars_(s_, index_, machine_),
      reduces_(s_, scalars_),
      group_(s_, reduces_) {
  s_.index_bits = variant == Variant::Narrow64 ? 64 : 32;
  s_.whole_accesses = is_wide(variant);
  rounds_ = schedule.big ? 1 : kRounds;
  // Rows in registers are short. Threads of columns have an accumulator for each lane, and registers for few more.
  s_.sum_levels = variant == Variant::Kept ? 0 : schedule.shape == Shape::Columns ? 1 : 2;
}

BasicBlock* KernelEmitter::block(const char* name) {
  return BasicBlock::Create(s_.ir.getContext(), name, s_.ir.GetInsertBlock()->getParent());
}

void KernelEmitter::when(Value* condition, const std::function<void()>& body) {
  if (condition == nullptr) return body();
  BasicBlock *inside = block("when"), *after = block("after");
  s_.ir.CreateCondBr(condition, inside, after);
  s_.ir.SetInsertPoint(inside);
  const size_t scope = index_.scope();
  body();
  index_.leave(scope);
  s_.ir.CreateBr(after);
  s_.ir.SetInsertPoint(after);
}

// while (i < end) i = body(i); the last i.
Value* KernelEmitter::while_below(Value* begin, Value* end, const std::function<Value*(Value*)>& body) {
  BasicBlock *before = s_.ir.GetInsertBlock(), *inside = block("loop"), *after = block("done");
  s_.ir.CreateCondBr(s_.ir.CreateICmpULT(begin, end), inside, after);
  s_.ir.SetInsertPoint(inside);
  llvm::PHINode* i = s_.ir.CreatePHI(begin->getType(), 2);
  i->addIncoming(begin, before);
  const size_t scope = index_.scope();
  Value* next = body(i);
  index_.leave(scope);
  BasicBlock* inside_end = s_.ir.GetInsertBlock();
  i->addIncoming(next, inside_end);
  s_.ir.CreateCondBr(s_.ir.CreateICmpULT(next, end), inside, after);
  s_.ir.SetInsertPoint(after);
  llvm::PHINode* last = s_.ir.CreatePHI(begin->getType(), 2);
  last->addIncoming(begin, before);
  last->addIncoming(next, inside_end);
  return last;
}

Value* KernelEmitter::sreg(llvm::Intrinsic::ID id) { return s_.ir.CreateZExt(s_.special(id), s_.index_type()); }

llvm::Function* KernelEmitter::declare(const std::string& name) {
  std::vector<llvm::Type*> types(kernel_.buffers.size(), llvm::PointerType::get(s_.ir.getContext(), kGlobal));
  for (size_t i = 0; i < types.size(); ++i)
    if (kernel_.buffers[i].by_value) types[i] = s_.ir.getInt64Ty();
  types.resize(parameter_count(kernel_, schedule_), s_.ir.getInt64Ty());
  types[types.size() - 2] = llvm::PointerType::get(s_.ir.getContext(), kGlobal);
  auto* type = llvm::FunctionType::get(s_.ir.getVoidTy(), types, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, s_.module);
  function->setCallingConv(llvm::CallingConv::PTX_Kernel);
  function->setDoesNotThrow();
  for (unsigned i = 0; i < kernel_.buffers.size(); ++i)
    if (!kernel_.buffers[i].by_value) function->addParamAttr(i, llvm::Attribute::NoAlias);
  llvm::LLVMContext& context = s_.ir.getContext();
  auto number = [&](int v) { return llvm::ConstantAsMetadata::get(s_.ir.getInt32(static_cast<uint32_t>(v))); };
  llvm::NamedMDNode* annotations = s_.module.getOrInsertNamedMetadata("nvvm.annotations");
  auto annotate = [&](const char* what, int v) {
    annotations->addOperand(llvm::MDNode::get(
        context, {llvm::ConstantAsMetadata::get(function), llvm::MDString::get(context, what), number(v)}));
  };
  annotate("kernel", 1);
  annotate("maxntidx", most_threads(schedule_, variant_));
  return function;
}

void KernelEmitter::set_magics(llvm::Function* function) {
  unsigned argument = static_cast<unsigned>(kernel_.buffers.size() + kernel_.size_symbols().size());
  for (const ExprId divisor : schedule_.divisors) {
    if (s_.index_bits == 32) s_.magic[divisor] = function->getArg(argument);
    ++argument;
  }
}

// An element that is passed by value is loaded from a variable of the thread, which becomes a register.
Value* KernelEmitter::pointer(const loop::Buffer& buffer, Value* parameter) {
  if (!buffer.by_value) return parameter;
  Value* variable = s_.ir.CreateAlloca(parameter->getType());
  s_.ir.CreateStore(parameter, variable);
  return variable;
}

void KernelEmitter::prologue(llvm::Function* function) {
  s_.ir.SetInsertPoint(BasicBlock::Create(s_.ir.getContext(), "entry", function));
  unsigned argument = 0;
  for (const loop::Buffer& buffer : kernel_.buffers)
    s_.buffers.push_back(pointer(buffer, function->getArg(argument++)));
  for (const VarId symbol : kernel_.size_symbols())
    s_.vars[symbol] = s_.ir.CreateTrunc(function->getArg(argument++), s_.index_type());
  set_magics(function);
  const auto parameters = static_cast<unsigned>(function->arg_size());
  workspace_ = function->getArg(parameters - 2);
  Value* halves = function->getArg(parameters - 1);
  splits_ = s_.ir.CreateTrunc(halves, s_.ir.getInt32Ty());
  stage_ = s_.ir.CreateTrunc(s_.ir.CreateLShr(halves, 32), s_.ir.getInt32Ty());
}

void KernelEmitter::emit(const std::string& name) {
  prologue(declare(name));
  if (variant_ == Variant::Tiled)
    tiles();
  else if (schedule_.shape == Shape::Points)
    points();
  else
    rows();
  s_.ir.CreateRetVoid();
}

// Steps of a loop: chunks of lanes along the vector loop, the last of which may be short when there is no other loop.
Value* KernelEmitter::chunks_of(size_t loop) {
  Value* extent = index_.emit(schedule_.loops[loop].extent);
  if (loop != schedule_.vector || lanes_ == 1) return extent;
  if (schedule_.has_tail()) extent = s_.ir.CreateAdd(extent, s_.index(lanes_ - 1));
  return s_.ir.CreateLShr(extent, s_.index(std::countr_zero(static_cast<unsigned>(lanes_))));
}

KernelEmitter::Digit KernelEmitter::digit(size_t loop) {
  const bool chunked = loop == schedule_.vector && lanes_ > 1;
  Digit out{loop, chunks_of(loop), nullptr, chunked ? lanes_ : 1};
  const auto magic = s_.magic.find(chunked ? schedule_.chunks : schedule_.loops[loop].extent);
  if (magic != s_.magic.end()) out.magic = magic->second;
  return out;
}

// The vector loop is the fastest, then the others from the last.
std::vector<KernelEmitter::Digit> KernelEmitter::digits(bool inner) {
  std::vector<Digit> out;
  if (schedule_.loops[schedule_.vector].inner == inner) out.push_back(digit(schedule_.vector));
  for (size_t k = schedule_.loops.size(); k-- > 0;)
    if (k != schedule_.vector && schedule_.loops[k].inner == inner) out.push_back(digit(k));
  return out;
}

Value* KernelEmitter::product(const std::vector<Digit>& digits) {
  Value* out = s_.index(1);
  for (const Digit& digit : digits) out = s_.ir.CreateMul(out, digit.count);
  return out;
}

void KernelEmitter::take_apart(Value* linear, const std::vector<Digit>& digits) {
  for (const Digit& digit : digits) {
    Value* v = linear;
    if (&digit != &digits.back()) {
      Value* divisor = s_.ir.CreateBinaryIntrinsic(Intrinsic::umax, digit.count, s_.index(1));
      Value* quotient = digit.magic != nullptr ? s_.divide(linear, digit.magic) : s_.ir.CreateUDiv(linear, divisor);
      v = s_.ir.CreateSub(linear, s_.ir.CreateMul(quotient, digit.count));
      linear = quotient;
    }
    if (digit.lanes > 1) v = s_.ir.CreateMul(v, s_.index(digit.lanes), "", /*HasNUW=*/true, /*HasNSW=*/true);
    s_.vars[schedule_.loops[digit.loop].var] = v;
  }
}

// ---- points

void KernelEmitter::points() {
  compute_level(0, 0);
  const std::vector<Digit> order = digits(/*inner=*/false);
  Value* block_start =
      s_.ir.CreateMul(sreg(Intrinsic::nvvm_read_ptx_sreg_ctaid_x), sreg(Intrinsic::nvvm_read_ptx_sreg_ntid_x));
  Value* linear = s_.ir.CreateAdd(block_start, sreg(Intrinsic::nvvm_read_ptx_sreg_tid_x));
  when(s_.ir.CreateICmpULT(linear, product(order)), [&] {
    take_apart(linear, order);
    Value* start = s_.vars.at(schedule_.loops[schedule_.vector].var);
    s_.vars.erase(schedule_.loops[schedule_.vector].var);
    compute_level(1, 0);
    if (lanes_ == 1 || !schedule_.has_tail()) return points_at(start, lanes_);
    Value* left = s_.ir.CreateSub(index_.emit(schedule_.loops[schedule_.vector].extent), start);
    Value* whole = s_.ir.CreateICmpUGE(left, s_.index(lanes_));
    when(whole, [&] { points_at(start, lanes_); });
    when(s_.ir.CreateNot(whole), [&] { tail(start); });
  });
}

void KernelEmitter::points_at(Value* start, int lanes) {
  s_.vars[schedule_.loops[schedule_.vector].var] = start;
  s_.lanes = lanes;
  compute_level(2, 0);
  for (size_t i = 0; i < kernel_.stores.size(); ++i)
    memory_.store(kernel_.stores[i], schedule_.store_index[i], schedule_.whole_store[i] != 0);
  s_.lanes = 1;
}

// Fewer points than lanes, one at a time.
void KernelEmitter::tail(Value* start) {
  s_.whole_accesses = false;
  while_below(start, index_.emit(schedule_.loops[schedule_.vector].extent), [&](Value* i) {
    points_at(i, 1);
    return s_.ir.CreateAdd(i, s_.index(1));
  });
  s_.whole_accesses = true;
}

// ---- rows and columns

// Which outer point this thread works on, and which threads help. Threads past the last one repeat it without storing,
// because barriers and shuffles wait for them.
void KernelEmitter::start_group() {
  const bool columns = schedule_.shape == Shape::Columns;
  Value *x = sreg(Intrinsic::nvvm_read_ptx_sreg_tid_x), *y = sreg(Intrinsic::nvvm_read_ptx_sreg_tid_y);
  Value *width = sreg(Intrinsic::nvvm_read_ptx_sreg_ntid_x), *height = sreg(Intrinsic::nvvm_read_ptx_sreg_ntid_y);
  member_ = columns ? y : x;
  members_ = columns ? height : width;
  Value* first = s_.ir.CreateMul(sreg(Intrinsic::nvvm_read_ptx_sreg_ctaid_x), columns ? width : height);
  outer_ = s_.ir.CreateAdd(first, columns ? x : y);
  const std::vector<Digit> order = digits(/*inner=*/false);
  outers_ = product(order);
  active_ = s_.ir.CreateICmpULT(outer_, outers_);
  outer_ = s_.ir.CreateBinaryIntrinsic(Intrinsic::umin, outer_, s_.ir.CreateSub(outers_, s_.index(1)));
  take_apart(outer_, order);
}

// A block's share of the inner chunks, and of that a thread's.
void KernelEmitter::start_splits(Value* chunks) {
  begin_ = member_;
  end_ = chunks;
  if (!may_split()) return;
  Value* splits = s_.ir.CreateZExt(splits_, s_.index_type());
  Value* split = sreg(Intrinsic::nvvm_read_ptx_sreg_ctaid_y);
  Value* share = s_.ir.CreateUDiv(s_.ir.CreateAdd(chunks, s_.ir.CreateSub(splits, s_.index(1))), splits);
  Value* start = s_.ir.CreateMul(split, share);
  begin_ = s_.ir.CreateAdd(start, member_);
  end_ = s_.ir.CreateBinaryIntrinsic(Intrinsic::umin, s_.ir.CreateAdd(start, share), chunks);
}

// In the last launch one block stores what belongs to a row. Where nothing else is stored, the others have nothing to
// do.
void KernelEmitter::leave_row_stores_to_one() {
  const auto& in_row = schedule_.store_in_row;
  if (!may_split() || std::find(in_row.begin(), in_row.end(), 0) != in_row.end()) return;
  const auto last = static_cast<uint32_t>(schedule_.passes_of_splits());
  Value* split = s_.special(Intrinsic::nvvm_read_ptx_sreg_ctaid_y);
  Value* idle =
      s_.ir.CreateAnd(s_.ir.CreateICmpEQ(stage_, s_.ir.getInt32(last)), s_.ir.CreateICmpNE(split, s_.ir.getInt32(0)));
  BasicBlock *leave = block("idle"), *go_on = block("works");
  s_.ir.CreateCondBr(idle, leave, go_on);
  s_.ir.SetInsertPoint(leave);
  s_.ir.CreateRetVoid();
  s_.ir.SetInsertPoint(go_on);
}

void KernelEmitter::rows() {
  leave_row_stores_to_one();
  compute_level(0, 0);
  start_group();
  const VarId vector = schedule_.loops[schedule_.vector].var;
  const auto start = s_.vars.find(vector);
  Value* lane = start == s_.vars.end() ? nullptr : start->second;
  if (lane != nullptr) s_.vars.erase(vector);
  compute_level(1, 0);
  if (schedule_.shape == Shape::Columns) {
    s_.vars[vector] = lane;
    s_.lanes = lanes_;
    compute_level(2, 0);
  }
  inner_digits_ = digits(/*inner=*/true);
  start_splits(product(inner_digits_));
  joins_ = !keeps() && !schedule_.joined.empty();
  if (joins_)
    // The error of an exponential grows with the distance from the maximum, and its share of the sum shrinks faster.
    for (const auto& [max, sum] : schedule_.joined)
      reduces_.join(max, sum, [this](Value* x) { return machine_.coarse_exp(x); });
  for (uint16_t pass = 0; pass < schedule_.analysis.stages; ++pass) {
    if (!joins_ || !schedule_.skipped[pass]) reduction_pass(pass);
    compute_level(schedule_.row_depth(), static_cast<uint16_t>(pass + 1));
  }
  store_pass();
}

void KernelEmitter::reduction_pass(uint16_t pass) {
  pass_reduces_.clear();
  for (uint32_t i = 0; i < kernel_.scalars.size(); ++i)
    if (schedule_.live[i] && kernel_.scalars[i].op == Op::Reduce && schedule_.analysis.stage[i] == pass + 1)
      pass_reduces_.push_back({i});
  if (pass_reduces_.empty()) return;
  std::vector<ReduceEmitter::Pair> values;
  if (may_split()) {
    BasicBlock *mine = block("own"), *theirs = block("parts"), *after = block("all");
    Value* is_done = s_.ir.CreateICmpUGT(stage_, s_.ir.getInt32(launch_of_pass_));
    s_.ir.CreateCondBr(is_done, theirs, mine);
    s_.ir.SetInsertPoint(mine);
    const size_t scope = index_.scope();
    const auto own = own_part(pass);
    index_.leave(scope);
    BasicBlock* mine_end = s_.ir.GetInsertBlock();
    s_.ir.CreateBr(after);
    s_.ir.SetInsertPoint(theirs);
    const auto left = left_parts();
    BasicBlock* theirs_end = s_.ir.GetInsertBlock();
    s_.ir.CreateBr(after);
    s_.ir.SetInsertPoint(after);
    auto join = [&](Value* a, Value* b) -> Value* {
      if (a == nullptr) return nullptr;
      llvm::PHINode* out = s_.ir.CreatePHI(a->getType(), 2);
      out->addIncoming(a, mine_end);
      out->addIncoming(b, theirs_end);
      return out;
    };
    for (size_t i = 0; i < own.size(); ++i)
      values.push_back({join(own[i].value, left[i].value), join(own[i].index, left[i].index)});
  } else {
    values = own_part(pass);
  }
  if (schedule_.shape == Shape::Rows)
    group_.across_rows(pass_reduces_, values);
  else
    group_.across_columns(pass_reduces_, values);
  if (may_split()) {
    Value* shared = s_.ir.CreateICmpUGT(splits_, s_.ir.getInt32(1));
    Value* now = s_.ir.CreateAnd(shared, s_.ir.CreateICmpEQ(stage_, s_.ir.getInt32(launch_of_pass_)));
    BasicBlock *leave = block("leave"), *go_on = block("go_on");
    s_.ir.CreateCondBr(now, leave, go_on);
    s_.ir.SetInsertPoint(leave);
    leave_parts(values);
    s_.ir.CreateRetVoid();
    s_.ir.SetInsertPoint(go_on);
  }
  Value* has_points = s_.ir.CreateICmpNE(product(inner_digits_), s_.index(0));
  for (size_t i = 0; i < values.size(); ++i) {
    s_.values[pass_reduces_[i].index] = reduces_.result(pass_reduces_[i], values[i]);
    const ScalarId sum = reduces_.joined_sum(pass_reduces_[i]);
    if (sum.valid()) s_.values[sum.index] = reduces_.joined_result(values[i], has_points);
  }
  ++launch_of_pass_;
}

// The running values of this thread's chunks.
std::vector<ReduceEmitter::Pair> KernelEmitter::own_part(uint16_t pass) {
  accumulators_.clear();
  for (const ScalarId id : pass_reduces_) accumulators_.push_back(reduces_.start(id, lanes_));
  inner_pass(pass);
  std::vector<ReduceEmitter::Pair> out;
  for (const Accumulator& a : accumulators_)
    out.push_back(schedule_.shape == Shape::Rows ? reduces_.across_lanes({a}) : reduces_.in_lanes(a));
  accumulators_.clear();
  return out;
}

// Several chunks at once, whose loads do not wait for each other. Float sums move to totals after runs of chunks.
Value* KernelEmitter::stream(Value* begin, Value* end, Value* step, const Body& body) {
  llvm::IRBuilder<>& ir = s_.ir;
  Value* ahead = ir.CreateMul(step, s_.index(rounds_ - 1));
  Value* main_end = ir.CreateSelect(ir.CreateICmpUGT(end, ahead), ir.CreateSub(end, ahead), s_.index(0));
  auto round = [&](Value* at) {
    for (int64_t i = 0; i < rounds_; ++i) {
      const size_t scope = index_.scope();
      body(at);
      index_.leave(scope);
      at = ir.CreateAdd(at, step);
    }
    end_round();
    return at;
  };
  const bool runs =
      std::any_of(accumulators_.begin(), accumulators_.end(), [](const Accumulator& a) { return !a.totals.empty(); });
  // Runs of runs: the running sums of a level move to the next level.
  auto run = [&](Value* at, int64_t length, size_t level, const std::function<Value*(Value*)>& inside) {
    Value* run_end = ir.CreateAdd(at, ir.CreateMul(step, s_.index(length)));
    Value* last = while_below(at, ir.CreateBinaryIntrinsic(Intrinsic::umin, run_end, main_end), inside);
    for (const Accumulator& a : accumulators_) reduces_.end_run(a, level);
    return last;
  };
  auto short_run = [&](Value* at) { return run(at, kRunLength, 0, round); };
  auto long_run = [&](Value* at) { return run(at, kRunLength * kRunLength, 1, short_run); };
  Value* at = runs ? while_below(begin, main_end, long_run) : while_below(begin, main_end, round);
  return while_below(at, end, [&](Value* i) {
    body(i);
    end_round();
    return ir.CreateAdd(i, step);
  });
}

void KernelEmitter::end_round() {
  for (const Accumulator& a : accumulators_) reduces_.end_round(a);
}

void KernelEmitter::inner_pass(uint16_t pass) {
  if (variant_ == Variant::Kept) return kept_pass(pass);
  if (!schedule_.scans.empty()) return scan_pass(pass);
  stream(begin_, end_, members_, [&](Value* at) { chunk(at, pass); });
}

// One chunk of inner points: folded, or stored in the last pass.
void KernelEmitter::chunk(Value* at, uint16_t pass) {
  take_apart(at, inner_digits_);
  const int before = s_.lanes;
  s_.lanes = lanes_;
  if (variant_ == Variant::Shared)
    compute_shared(pass, at);
  else
    compute_inside(schedule_.needed[pass]);
  if (pass < schedule_.analysis.stages)
    fold_all();
  else
    store_points(pass, active_);
  s_.lanes = before;
}

// All chunks of a row that fit into registers. Those past the end repeat the first one, and are folded or stored by
// nobody: no loads wait behind a branch.
void KernelEmitter::kept_pass(uint16_t pass) {
  const int before = s_.lanes;
  for (int i = 0; i < kKeptChunks; ++i) {
    const size_t scope = index_.scope();
    Value* at = s_.ir.CreateAdd(begin_, s_.ir.CreateMul(members_, s_.index(i)));
    Value* inside = s_.ir.CreateICmpULT(at, end_);
    take_apart(s_.ir.CreateSelect(inside, at, s_.index(0)), inner_digits_);
    s_.lanes = lanes_;
    compute_kept(pass, i);
    if (pass < schedule_.analysis.stages) {
      s_.mask = s_.splat_mask(inside);
      fold_all();
      s_.mask = nullptr;
    } else {
      store_points(pass, s_.ir.CreateAnd(inside, active_));
    }
    s_.lanes = before;
    index_.leave(scope);
  }
}

void KernelEmitter::fold_all() {
  Value* position = nullptr;
  if (schedule_.position.expr.valid()) position = s_.widened_index(index_.emit(schedule_.position));
  for (const Accumulator& a : accumulators_) reduces_.fold(a, position);
}

void KernelEmitter::store_points(uint16_t, Value* condition) {
  when(condition, [&] {
    for (size_t i = 0; i < kernel_.stores.size(); ++i)
      if (!schedule_.store_in_row[i])
        memory_.store(kernel_.stores[i], schedule_.store_index[i], schedule_.whole_store[i] != 0);
  });
}

void KernelEmitter::store_pass() {
  const auto& in_row = schedule_.store_in_row;
  const uint16_t last = schedule_.analysis.stages;
  if (std::any_of(in_row.begin(), in_row.end(), [](uint8_t row) { return row == 0; })) {
    inner_pass(last);
  }
  if (std::any_of(in_row.begin(), in_row.end(), [](uint8_t row) { return row != 0; })) row_stores();
}

// By one thread of the group, after all of them have read what it writes.
void KernelEmitter::row_stores() {
  llvm::IRBuilder<>& ir = s_.ir;
  if (schedule_.in_place) {
    ir.CreateIntrinsic(Intrinsic::nvvm_bar_warp_sync, {}, {ir.getInt32(0xffffffff)});
    Value* group = schedule_.shape == Shape::Rows ? ir.CreateICmpUGT(members_, s_.index(32))
                                                  : ir.CreateICmpUGT(members_, s_.index(1));
    when(group, [&] { group_.barrier(); });
  }
  Value* mine = ir.CreateICmpEQ(member_, s_.index(0));
  if (active_ != nullptr) mine = ir.CreateAnd(mine, active_);
  Value* split = s_.special(Intrinsic::nvvm_read_ptx_sreg_ctaid_y);
  mine = ir.CreateAnd(mine, ir.CreateICmpEQ(split, ir.getInt32(0)));
  when(mine, [&] {
    for (size_t i = 0; i < kernel_.stores.size(); ++i)
      if (schedule_.store_in_row[i])
        memory_.store(kernel_.stores[i], schedule_.store_index[i], schedule_.whole_store[i] != 0);
  });
}

// ---- what blocks leave for the next launch: words of 8 bytes, [reduction][block][outer point]

void KernelEmitter::for_part_words(const std::function<void(size_t, size_t, bool)>& body) {
  size_t word = 0;
  for (uint32_t i = 0; i < kernel_.scalars.size(); ++i) {
    const loop::Scalar& s = kernel_.scalars[i];
    if (!schedule_.live[i] || s.op != Op::Reduce) continue;
    const auto place = std::find(pass_reduces_.begin(), pass_reduces_.end(), ScalarId{i});
    if (joins_ && schedule_.is_joined_sum({i})) continue;  // beside its maximum
    const bool arg = s.combine == loop::Combine::ArgMax || s.combine == loop::Combine::ArgMin;
    for (const bool is_index : {false, true}) {
      if (is_index && !arg && !reduces_.joined_sum({i}).valid()) continue;
      if (place != pass_reduces_.end()) body(word, static_cast<size_t>(place - pass_reduces_.begin()), is_index);
      ++word;
    }
  }
}

Value* KernelEmitter::part_pointer(size_t word, Value* split, uint32_t lane) {
  llvm::IRBuilder<>& ir = s_.ir;
  llvm::Type* i64 = ir.getInt64Ty();
  const int64_t lanes = schedule_.shape == Shape::Columns ? lanes_ : 1;
  auto wide = [&](Value* v) { return ir.CreateZExt(v, i64); };
  Value* all = ir.CreateMul(wide(outers_), s_.i64(lanes));
  Value* point = ir.CreateAdd(ir.CreateMul(wide(outer_), s_.i64(lanes)), s_.i64(lane));
  Value* row = ir.CreateAdd(ir.CreateMul(wide(splits_), s_.i64(static_cast<int64_t>(word))), wide(split));
  return ir.CreateGEP(i64, workspace_, ir.CreateAdd(ir.CreateMul(row, all), point));
}

void KernelEmitter::leave_parts(const std::vector<ReduceEmitter::Pair>& values) {
  llvm::IRBuilder<>& ir = s_.ir;
  Value* mine = ir.CreateICmpEQ(member_, s_.index(0));
  if (active_ != nullptr) mine = ir.CreateAnd(mine, active_);
  Value* split = s_.special(Intrinsic::nvvm_read_ptx_sreg_ctaid_y);
  when(mine, [&] {
    for_part_words([&](size_t word, size_t reduce, bool is_index) {
      Value* v = is_index ? values[reduce].index : values[reduce].value;
      for (unsigned lane = 0; lane < EmitState::lanes_of(v); ++lane) {
        Value* one = EmitState::is_vector(v) ? ir.CreateExtractElement(v, lane) : v;
        ir.CreateAlignedStore(group_.as_word(one), part_pointer(word, split, lane), llvm::Align(8));
      }
    });
  });
}

// The running values over this thread's share of what all blocks have left.
std::vector<ReduceEmitter::Pair> KernelEmitter::left_parts() {
  llvm::IRBuilder<>& ir = s_.ir;
  const int lanes = schedule_.shape == Shape::Columns ? lanes_ : 1;
  std::vector<Accumulator> parts;
  for (const ScalarId id : pass_reduces_) parts.push_back(reduces_.start(id, lanes));
  Value* splits = ir.CreateZExt(splits_, s_.index_type());
  stream(member_, splits, members_, [&](Value* split) {
    std::vector<ReduceEmitter::Pair> read;
    for (const Accumulator& a : parts) read.push_back(reduces_.identity(a.reduce, lanes));
    for_part_words([&](size_t word, size_t reduce, bool is_index) {
      Value*& into = is_index ? read[reduce].index : read[reduce].value;
      llvm::Type* type = into->getType();
      for (unsigned lane = 0; lane < static_cast<unsigned>(lanes); ++lane) {
        Value* one = ir.CreateAlignedLoad(ir.getInt64Ty(), part_pointer(word, split, lane), llvm::Align(8));
        one = group_.from_word(one, type->getScalarType());
        into = lanes == 1 ? one : ir.CreateInsertElement(into, one, lane);
      }
    });
    for (size_t i = 0; i < parts.size(); ++i) reduces_.put(parts[i], read[i]);
  });
  std::vector<ReduceEmitter::Pair> out;
  for (const Accumulator& a : parts) out.push_back(reduces_.in_lanes(a));
  return out;
}

// ---- scalars

void KernelEmitter::compute_level(uint16_t depth, uint16_t stage) {
  if (depth <= 1 && stage == 0) index_.prepare(depth);
  for (uint32_t i = 0; i < kernel_.scalars.size(); ++i) {
    if (!schedule_.live[i] || schedule_.depth[i] != depth || schedule_.analysis.stage[i] != stage) continue;
    if (kernel_.scalars[i].op != Op::Reduce) s_.values[i] = compute({i});
  }
}

Value* KernelEmitter::compute(ScalarId id) {
  const loop::Scalar& scalar = kernel_[id];
  const bool coarse = schedule_.coarse[id.index] && scalar.dtype == DType::F32;
  if (coarse && scalar.op == Op::Exp) return machine_.coarse_exp(s_.value(scalar.a));
  if (coarse && scalar.op == Op::Tanh) return machine_.coarse_tanh(s_.value(scalar.a));
  if (!coarse || scalar.op != Op::Div) return scalars_.emit(id);
  Value *a = s_.value(scalar.a), *b = s_.value(scalar.b);
  const bool vector = EmitState::is_vector(a) || EmitState::is_vector(b);
  return machine_.coarse_divide(vector ? s_.splat(a) : a, vector ? s_.splat(b) : b);
}

void KernelEmitter::compute_inside(const std::vector<uint8_t>& needed) {
  for (uint32_t i = 0; i < kernel_.scalars.size(); ++i) {
    if (!needed[i]) continue;
    s_.values[i] = kernel_.scalars[i].op == Op::Scan ? scan({i}) : compute({i});
  }
}

void KernelEmitter::compute_kept(uint16_t pass, int chunk) {
  kept_memory_.resize(schedule_.kept.scalars.size());
  for (uint32_t i = 0; i < kernel_.scalars.size(); ++i) {
    if (!schedule_.kept.needed[pass][i]) continue;
    const auto kept = std::find(schedule_.kept.scalars.begin(), schedule_.kept.scalars.end(), ScalarId{i});
    if (kept == schedule_.kept.scalars.end()) {
      s_.values[i] = compute({i});
      continue;
    }
    const auto which = static_cast<size_t>(kept - schedule_.kept.scalars.begin());
    std::vector<llvm::AllocaInst*>& memory = kept_memory_[which];
    if (pass > schedule_.kept.first[which]) {
      llvm::AllocaInst* from = memory[static_cast<size_t>(chunk)];
      s_.values[i] = s_.ir.CreateLoad(from->getAllocatedType(), from);
      continue;
    }
    s_.values[i] = compute({i});
    memory.push_back(reduces_.slot(s_.values[i]->getType()));
    s_.ir.CreateStore(s_.values[i], memory.back());
  }
}

// A thread takes the same points in every pass, so it reads only what it wrote: no barriers.
void KernelEmitter::compute_shared(uint16_t pass, Value* at) {
  for (uint32_t i = 0; i < kernel_.scalars.size(); ++i) {
    if (!schedule_.shared.needed[pass][i]) continue;
    const auto kept = std::find(schedule_.shared.scalars.begin(), schedule_.shared.scalars.end(), ScalarId{i});
    if (kept == schedule_.shared.scalars.end()) {
      s_.values[i] = compute({i});
      continue;
    }
    const auto which = static_cast<size_t>(kept - schedule_.shared.scalars.begin());
    const DType dtype = schedule_.shared_dtype(kernel_, which);
    const llvm::Align align(static_cast<uint64_t>(byte_size(dtype)));
    llvm::Type* type = s_.memory_type(dtype);
    if (pass > schedule_.shared.first[which]) {
      s_.values[i] = memory_.from_memory(dtype, s_.ir.CreateAlignedLoad(type, shared_slot(which, at), align));
      continue;
    }
    const loop::Scalar& scalar = kernel_.scalars[i];
    const bool plain = scalar.op == Op::Load && !scalar.a.valid();
    Value* raw = plain ? memory_.raw_load(scalar, schedule_.scalar_index[i]) : compute({i});
    s_.values[i] = plain ? memory_.from_memory(dtype, raw) : raw;
    if (!plain && dtype == DType::Bool) raw = s_.ir.CreateZExt(raw, type);
    s_.ir.CreateAlignedStore(raw, shared_slot(which, at), align);
  }
}

// [row of the block][kept scalar][point], rows padded to kRowMultiple points.
Value* KernelEmitter::shared_slot(size_t kept, Value* at) {
  llvm::IRBuilder<>& ir = s_.ir;
  if (row_memory_ == nullptr) {
    auto* type = llvm::ArrayType::get(ir.getInt8Ty(), 0);
    row_memory_ = new llvm::GlobalVariable(s_.module, type, /*isConstant=*/false, llvm::GlobalValue::ExternalLinkage,
                                           nullptr, "row", nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
    row_memory_->setAlignment(llvm::Align(16));
  }
  int64_t before = 0, all = 0;
  for (size_t k = 0; k < schedule_.shared.scalars.size(); ++k) {
    const int64_t bytes = byte_size(schedule_.shared_dtype(kernel_, k));
    all += bytes;
    if (k < kept) before += bytes;
  }
  Value* points = ir.CreateAnd(ir.CreateAdd(end_, s_.index(kRowMultiple - 1)), s_.index(-kRowMultiple));
  Value* row = ir.CreateMul(sreg(Intrinsic::nvvm_read_ptx_sreg_tid_y), s_.index(all));
  Value* start = ir.CreateMul(ir.CreateAdd(row, s_.index(before)), points);
  const int64_t bytes = byte_size(schedule_.shared_dtype(kernel_, kept));
  return ir.CreateGEP(ir.getInt8Ty(), row_memory_, ir.CreateAdd(start, ir.CreateMul(at, s_.index(bytes))));
}

void emit_kernel(const loop::Kernel& kernel, const Schedule& schedule, Variant variant, const std::string& name,
                 llvm::Module& module) {
  KernelEmitter(kernel, schedule, variant, module).emit(name);
}

}  // namespace cresset::codegen::nvptx
