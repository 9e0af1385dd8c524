#include "codegen/cpu/emit_memory.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <bit>
#include <numeric>

#include "codegen/common/emit_float8.h"

namespace cresset::codegen::cpu {

using llvm::Value;

namespace {

// Whether an f32 is exactly representable in bf16. The result of operations which only move bf16 values is.
bool is_exactly_bf16(const loop::Kernel& kernel, ScalarId id, int depth = 0) {
  constexpr int kDeepest = 8;
  const loop::Scalar& s = kernel[id];
  const auto is = [&](ScalarId operand) { return depth < kDeepest && is_exactly_bf16(kernel, operand, depth + 1); };
  switch (s.op) {
    case loop::Op::Load:
      return kernel.buffers[s.buffer.index].dtype == DType::BF16;
    case loop::Op::RoundTo:
      return s.round == DType::BF16;
    case loop::Op::Const:
      return (std::bit_cast<uint32_t>(static_cast<float>(s.number)) & 0xffffu) == 0;
    case loop::Op::Select:
      return is(s.b) && is(s.c);
    case loop::Op::Neg:
    case loop::Op::Abs:
      return is(s.a);
    case loop::Op::Maximum:
    case loop::Op::Minimum:
      return is(s.a) && is(s.b);
    case loop::Op::Reduce:
      return (s.combine == loop::Combine::Max || s.combine == loop::Combine::Min) && is(s.a);
    default:
      return false;
  }
}

}  // namespace

Value* MemoryEmitter::high_half(Value* v) {
  Value* bits = s_.ir.CreateBitCast(v, v->getType()->getWithNewType(s_.ir.getInt32Ty()));
  return s_.ir.CreateTrunc(s_.ir.CreateLShr(bits, s_.constant_int_like(bits, 16)),
                           v->getType()->getWithNewType(s_.ir.getInt16Ty()));
}

// The machine's conversion flushes subnormal numbers to zero.
Value* MemoryEmitter::bf16_by_machine(Value* v) {
  constexpr unsigned kWidth = 16;
  constexpr int kSubnormal = 0x20;
  std::vector<Value*> narrow, subnormal;
  for (unsigned start = 0; start < EmitState::lanes_of(v); start += kWidth) {
    std::vector<int> lanes(kWidth);
    std::iota(lanes.begin(), lanes.end(), static_cast<int>(start));
    Value* part = EmitState::lanes_of(v) == kWidth ? v : s_.ir.CreateShuffleVector(v, lanes);
    Value* converted = s_.ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512, {}, {part});
    narrow.push_back(s_.ir.CreateBitCast(converted, s_.widened(s_.ir.getInt16Ty(), kWidth)));
    subnormal.push_back(
        s_.ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_fpclass_ps_512, {}, {part, s_.ir.getInt32(kSubnormal)}));
  }
  return s_.unless_any(llvm::concatenateVectors(s_.ir, subnormal), llvm::concatenateVectors(s_.ir, narrow),
                       [&] { return bf16_by_hand(v); });
}

Value* MemoryEmitter::bf16_bits(Value* v) {
  const unsigned lanes = EmitState::lanes_of(v);
  return s_.has_bf16 && lanes % 16 == 0 ? bf16_by_machine(v) : bf16_by_hand(v);
}

Value* MemoryEmitter::bf16_by_hand(Value* v) {
  llvm::Type* wide = v->getType()->getWithNewType(s_.ir.getInt32Ty());
  Value* bits = s_.ir.CreateBitCast(v, wide);
  auto number = [&](int64_t n) { return s_.constant_int_like(bits, n); };
  Value* odd = s_.ir.CreateAnd(s_.ir.CreateLShr(bits, number(16)), number(1));
  Value* rounded = s_.ir.CreateAdd(bits, s_.ir.CreateAdd(odd, number(0x7fff)));
  Value* nan = s_.ir.CreateOr(bits, number(0x400000));
  Value* kept = s_.ir.CreateSelect(s_.ir.CreateFCmpUNO(v, v), nan, rounded);
  return high_half(s_.ir.CreateBitCast(kept, v->getType()));
}

Value* MemoryEmitter::from_memory(DType dtype, Value* v) {
  if (dtype == DType::Bool) return s_.ir.CreateICmpNE(v, s_.constant_int_like(v, 0));
  if (dtype == DType::F16) return s_.ir.CreateFPExt(v, v->getType()->getWithNewType(s_.ir.getFloatTy()));
  if (category(dtype) == DTypeCategory::Float8) return float8_to_float(s_, dtype, v);
  if (dtype != DType::BF16) return v;
  Value* wide = s_.ir.CreateZExt(v, v->getType()->getWithNewType(s_.ir.getInt32Ty()));
  Value* bits = s_.ir.CreateShl(wide, s_.constant_int_like(wide, 16));
  return s_.ir.CreateBitCast(bits, v->getType()->getWithNewType(s_.ir.getFloatTy()));
}

Value* MemoryEmitter::to_memory(DType dtype, Value* v) {
  llvm::Type* type = v->getType()->getWithNewType(s_.memory_type(dtype));
  if (dtype == DType::Bool) return s_.ir.CreateZExt(v, type);
  if (dtype == DType::F16) return s_.ir.CreateFPTrunc(v, type);
  if (dtype == DType::BF16) return bf16_bits(v);
  return category(dtype) == DTypeCategory::Float8 ? float_to_float8(s_, dtype, v) : v;
}

Value* MemoryEmitter::round_to(DType narrow, Value* v) { return from_memory(narrow, to_memory(narrow, v)); }

Value* MemoryEmitter::lane_mask(Value* extra) {
  if (extra == nullptr) return s_.mask;
  extra = s_.splat(extra);
  return s_.mask == nullptr ? extra : s_.ir.CreateAnd(s_.mask, extra);
}

// A masked-out load must not access memory; it reads zeros instead.
Value* MemoryEmitter::uniform_load(llvm::Type* type, Value* pointer, Value* condition, llvm::Align align) {
  if (condition != nullptr) pointer = s_.ir.CreateSelect(condition, pointer, s_.zeros);
  return s_.ir.CreateAlignedLoad(type, pointer, align);
}

namespace {

std::vector<int> reversed(int lanes) {
  std::vector<int> order;
  for (int lane = lanes; lane-- > 0;) order.push_back(lane);
  return order;
}

}  // namespace

// A mask over the elements of vector `part` of `step` adjacent vectors: every step-th element, where its lane is on.
Value* MemoryEmitter::spread_mask(Value* mask, int step, int part) {
  std::vector<int> from;
  for (int i = 0; i < s_.lanes; ++i) {
    const int element = part * s_.lanes + i;
    from.push_back(element % step == 0 ? element / step : s_.lanes);
  }
  if (mask == nullptr) mask = llvm::Constant::getAllOnesValue(s_.widened(s_.ir.getInt1Ty(), s_.lanes));
  return s_.ir.CreateShuffleVector(mask, llvm::Constant::getNullValue(mask->getType()), from);
}

// Loads lanes `step` elements apart, with lane 0 at `pointer`, as whole vectors, and picks the lanes. The last vector
// must not read beyond the last lane.
Value* MemoryEmitter::strided_load(llvm::Type* type, Value* pointer, int step, llvm::Align align, Value* mask) {
  llvm::Type* element = type->getScalarType();
  Value* zeros = llvm::Constant::getNullValue(type);
  if (step == -1) {
    const std::vector<int> order = reversed(s_.lanes);
    pointer = s_.ir.CreateGEP(element, pointer, s_.i64(1 - s_.lanes));
    Value* out = mask == nullptr
                     ? static_cast<Value*>(s_.ir.CreateAlignedLoad(type, pointer, align))
                     : s_.ir.CreateMaskedLoad(type, pointer, align, s_.ir.CreateShuffleVector(mask, order), zeros);
    return s_.ir.CreateShuffleVector(out, order);
  }
  std::vector<Value*> parts;
  for (int part = 0; part < step; ++part) {
    Value* from = s_.ir.CreateGEP(element, pointer, s_.i64(part * s_.lanes));
    if (mask == nullptr && part + 1 < step)
      parts.push_back(s_.ir.CreateAlignedLoad(type, from, align));
    else
      parts.push_back(s_.ir.CreateMaskedLoad(type, from, align, spread_mask(mask, step, part), zeros));
  }
  std::vector<int> picked;
  for (int lane = 0; lane < s_.lanes; ++lane) picked.push_back(lane * step);
  return s_.ir.CreateShuffleVector(llvm::concatenateVectors(s_.ir, parts), picked);
}

void MemoryEmitter::strided_store(Value* value, Value* pointer, int step, Masked how) {
  const llvm::Align align = how.align;
  Value* mask = how.mask;
  llvm::Type* element = value->getType()->getScalarType();
  if (step == -1) {
    const std::vector<int> order = reversed(s_.lanes);
    pointer = s_.ir.CreateGEP(element, pointer, s_.i64(1 - s_.lanes));
    value = s_.ir.CreateShuffleVector(value, order);
    if (mask == nullptr)
      s_.ir.CreateAlignedStore(value, pointer, align);
    else
      s_.ir.CreateMaskedStore(value, pointer, align, s_.ir.CreateShuffleVector(mask, order));
    return;
  }
  for (int part = 0; part < step; ++part) {
    std::vector<int> spread;
    for (int i = 0; i < s_.lanes; ++i) spread.push_back((part * s_.lanes + i) / step);
    Value* to = s_.ir.CreateGEP(element, pointer, s_.i64(part * s_.lanes));
    s_.ir.CreateMaskedStore(s_.ir.CreateShuffleVector(value, spread), to, align, spread_mask(mask, step, part));
  }
}

Value* MemoryEmitter::lanes_load(const Lanes& lanes, IndexEmitter::Access access, Value* offset, int step) {
  Value *mask = lanes.mask, *zeros = llvm::Constant::getNullValue(lanes.type);
  Value* pointer = s_.ir.CreateGEP(lanes.type->getScalarType(), lanes.buffer, offset);
  switch (access) {
    case IndexEmitter::Access::Uniform:
      CRESSET_CHECK(false, "one address is no load of lanes");
    case IndexEmitter::Access::Contiguous:
      if (mask == nullptr) return s_.ir.CreateAlignedLoad(lanes.type, pointer, lanes.align);
      return s_.ir.CreateMaskedLoad(lanes.type, pointer, lanes.align, mask, zeros);
    case IndexEmitter::Access::Strided:
      return strided_load(lanes.type, pointer, step, lanes.align, mask);
    case IndexEmitter::Access::Scattered:
      if (mask == nullptr) mask = s_.splat(s_.ir.getTrue());
      return s_.ir.CreateMaskedGather(lanes.type, pointer, lanes.align, mask, zeros);
  }
  CRESSET_CHECK(false, "unknown access");
}

// Loads neighbours as a whole where the lanes' addresses permit, otherwise lane by lane.
Value* MemoryEmitter::run_load(const Lanes& lanes, const IndexEmitter::Run& run, const IndexForm& form) {
  using Access = IndexEmitter::Access;
  const auto neighbours = [&] {
    return lanes_load(lanes, run.step == 1 ? Access::Contiguous : Access::Strided, run.first, run.step);
  };
  const auto apart = [&] {
    Value* offset = nullptr;
    const Access access = index_.access(form, offset);
    return lanes_load(lanes, access, offset, 0);
  };
  return index_.where(run.holds, neighbours, apart);
}

// A load that is hoisted out of an inner loop also happens where the loop is empty. Its tensor may then have no
// elements, and no memory.
Value* MemoryEmitter::has_memory(const loop::Scalar& scalar) {
  const size_t first = s_.schedule.first_inner(), count = s_.schedule.loops.size();
  const auto id = static_cast<size_t>(&scalar - s_.kernel.scalars.data());
  if (first == count || s_.schedule.depth[id] >= s_.schedule.loop_depth(count - 1)) return nullptr;
  return s_.ir.CreateIsNotNull(s_.buffers[scalar.buffer.index]);
}

Value* MemoryEmitter::load(const loop::Scalar& scalar, const IndexForm& form) {
  const DType dtype = s_.kernel.buffers[scalar.buffer.index].dtype;
  llvm::Type* element = s_.memory_type(dtype);
  Value* own_mask = scalar.a.valid() ? s_.value(scalar.a) : nullptr;
  if (Value* const given = has_memory(scalar))
    own_mask = own_mask == nullptr ? given : s_.ir.CreateAnd(own_mask, s_.splat_like(own_mask, given));
  Lanes lanes{s_.widened(element, s_.lanes), s_.buffers[scalar.buffer.index],
              llvm::Align(static_cast<uint64_t>(byte_size(dtype))), nullptr};
  if (const auto run = index_.run(form)) {
    lanes.mask = lane_mask(own_mask);
    return from_memory(dtype, run_load(lanes, *run, form));
  }
  Value* offset = nullptr;
  IndexEmitter::Access access = index_.access(form, offset);
  const bool mask_varies = own_mask != nullptr && EmitState::is_vector(own_mask);
  if (access == IndexEmitter::Access::Uniform && mask_varies) {
    offset = s_.splat(offset);
    access = IndexEmitter::Access::Scattered;
  }
  if (access == IndexEmitter::Access::Uniform) {
    Value* pointer = s_.ir.CreateGEP(element, lanes.buffer, offset);
    return from_memory(dtype, uniform_load(element, pointer, own_mask, lanes.align));
  }
  lanes.mask = lane_mask(own_mask);
  return from_memory(dtype, lanes_load(lanes, access, offset, index_.step(form)));
}

void MemoryEmitter::store(const loop::Store& store, const IndexForm& form) {
  const DType dtype = s_.kernel.buffers[store.buffer.index].dtype;
  const llvm::Align align(static_cast<uint64_t>(byte_size(dtype)));
  Value* offset = nullptr;
  IndexEmitter::Access access = index_.access(form, offset);
  Value* value = s_.value(store.value);
  const bool moves = dtype == DType::BF16 && is_exactly_bf16(s_.kernel, store.value);
  value = moves ? high_half(value) : to_memory(dtype, value);
  Value* condition = store.condition.valid() ? s_.value(store.condition) : nullptr;
  const bool varies = EmitState::is_vector(value) || (condition != nullptr && EmitState::is_vector(condition));
  if (access == IndexEmitter::Access::Uniform && varies) {
    offset = s_.splat(offset);
    access = IndexEmitter::Access::Scattered;
  }
  Value* pointer = s_.ir.CreateGEP(s_.memory_type(dtype), s_.buffers[store.buffer.index], offset);
  if (access == IndexEmitter::Access::Uniform) return store_where(condition, value, pointer, align);
  value = s_.splat(value);
  Value* mask = lane_mask(condition);
  if (access == IndexEmitter::Access::Strided) {
    strided_store(value, pointer, index_.step(form), {align, mask});
  } else if (access == IndexEmitter::Access::Scattered) {
    s_.ir.CreateMaskedScatter(value, pointer, align, mask != nullptr ? mask : s_.splat(s_.ir.getTrue()));
  } else if (mask != nullptr) {
    s_.ir.CreateMaskedStore(value, pointer, align, mask);
  } else {
    s_.ir.CreateAlignedStore(value, pointer, align);
  }
}

// Stores a single value; `condition`: i1, or nullptr.
void MemoryEmitter::store_where(Value* condition, Value* value, Value* pointer, llvm::Align align) {
  if (condition == nullptr) {
    s_.ir.CreateAlignedStore(value, pointer, align);
    return;
  }
  llvm::Function* function = s_.ir.GetInsertBlock()->getParent();
  auto* inside = llvm::BasicBlock::Create(s_.ir.getContext(), "store", function);
  auto* after = llvm::BasicBlock::Create(s_.ir.getContext(), "stored", function);
  s_.ir.CreateCondBr(condition, inside, after);
  s_.ir.SetInsertPoint(inside);
  s_.ir.CreateAlignedStore(value, pointer, align);
  s_.ir.CreateBr(after);
  s_.ir.SetInsertPoint(after);
}

}  // namespace cresset::codegen::cpu
