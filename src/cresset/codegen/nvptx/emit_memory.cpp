#include "codegen/nvptx/emit_memory.h"

#include <llvm/Analysis/VectorUtils.h>

#include <algorithm>

#include "codegen/common/emit_float8.h"

namespace cresset::codegen::nvptx {

using llvm::Value;

Value* GpuIndexEmitter::division(ExprId expr, Value* a, Value* b) {
  const auto& pool = s_.kernel.env().pool();
  const auto& proved = s_.plan.unsigned_division;
  const auto known = gpu_.magic.find(pool.operands(expr)[1]);
  const bool narrow = a->getType()->getScalarSizeInBits() == 32;
  if (!narrow || known == gpu_.magic.end() || !std::binary_search(proved.begin(), proved.end(), expr))
    return IndexEmitter::division(expr, a, b);
  Value* quotient = gpu_.divide(a, known->second);
  if (pool[expr].kind == sym::Kind::FloorDiv) return quotient;
  return s_.ir.CreateSub(a, s_.ir.CreateMul(quotient, b));
}

Value* MemoryEmitter::element(loop::BufferId buffer, Value* offset) {
  return s_.ir.CreateGEP(s_.memory_type(s_.kernel.buffers[buffer.index].dtype), s_.buffers[buffer.index],
                         s_.widened_index(offset));
}

// What nothing writes while the kernel runs may be read through the texture path.
Value* MemoryEmitter::read(llvm::Type* type, Value* pointer, uint64_t align, const loop::Buffer& buffer) {
  llvm::LoadInst* out = s_.ir.CreateAlignedLoad(type, pointer, llvm::Align(align));
  if (!buffer.written && !buffer.by_value)
    out->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(s_.ir.getContext(), {}));
  return out;
}

// Narrow elements travel as whole words.
Value* MemoryEmitter::whole_load(const loop::Buffer& buffer, Value* pointer) {
  const auto bytes = static_cast<uint64_t>(byte_size(buffer.dtype)) * static_cast<uint64_t>(s_.lanes);
  llvm::Type* type = s_.widened(s_.memory_type(buffer.dtype), s_.lanes);
  if (byte_size(buffer.dtype) >= 4) return from_memory(buffer.dtype, read(type, pointer, bytes, buffer));
  llvm::Type* words = bytes >= 4 ? s_.widened(s_.ir.getInt32Ty(), static_cast<int>(bytes / 4)) : s_.ir.getInt16Ty();
  Value* read_words = read(words, pointer, bytes, buffer);
  if (buffer.dtype == DType::BF16 && bytes >= 4) return widened_bf16(read_words);
  return from_memory(buffer.dtype, s_.ir.CreateBitCast(read_words, type));
}

Value* MemoryEmitter::widened_bf16(Value* words) {
  Value* low = s_.ir.CreateShl(words, s_.constant_int_like(words, 16));
  Value* high = s_.ir.CreateAnd(words, s_.constant_int_like(words, 0xffff0000));
  llvm::Type* type = s_.widened(s_.ir.getFloatTy(), s_.lanes);
  Value* out = llvm::PoisonValue::get(type);
  for (unsigned i = 0; i < EmitState::lanes_of(words); ++i) {
    for (const unsigned half : {0u, 1u}) {
      Value* part = half == 0 ? low : high;
      if (EmitState::is_vector(part)) part = s_.ir.CreateExtractElement(part, i);
      out = s_.ir.CreateInsertElement(out, s_.ir.CreateBitCast(part, s_.ir.getFloatTy()), 2 * i + half);
    }
  }
  return out;
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

// Two conversions are one instruction, which leaves both in one register.
Value* MemoryEmitter::narrow_pairs(DType dtype, Value* v) {
  const auto id = dtype == DType::BF16 ? llvm::Intrinsic::nvvm_ff2bf16x2_rn : llvm::Intrinsic::nvvm_ff2f16x2_rn;
  const unsigned lanes = EmitState::lanes_of(v);
  Value* out = llvm::PoisonValue::get(s_.widened(s_.ir.getInt32Ty(), static_cast<int>(lanes / 2)));
  for (unsigned i = 0; i < lanes; i += 2) {
    Value* low = s_.ir.CreateExtractElement(v, i);
    Value* high = s_.ir.CreateExtractElement(v, i + 1);
    Value* pair = s_.ir.CreateBitCast(s_.ir.CreateIntrinsic(id, {}, {high, low}), s_.ir.getInt32Ty());
    out = lanes == 2 ? pair : s_.ir.CreateInsertElement(out, pair, i / 2);
  }
  return out;
}

Value* MemoryEmitter::to_memory(DType dtype, Value* v) {
  llvm::Type* type = v->getType()->getWithNewType(s_.memory_type(dtype));
  if (dtype == DType::Bool) return s_.ir.CreateZExt(v, type);
  if (category(dtype) == DTypeCategory::Float8) return float_to_float8(s_, dtype, v);
  if (dtype != DType::F16 && dtype != DType::BF16) return v;
  if (EmitState::lanes_of(v) % 2 == 0) return s_.ir.CreateBitCast(narrow_pairs(dtype, v), type);
  if (dtype == DType::F16) return s_.ir.CreateFPTrunc(v, type);
  return s_.ir.CreateBitCast(s_.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_f2bf16_rn, {}, {v}), type);
}

Value* MemoryEmitter::round_to(DType narrow, Value* v) { return from_memory(narrow, to_memory(narrow, v)); }

namespace {

llvm::Align element_align(DType dtype) { return llvm::Align(static_cast<uint64_t>(byte_size(dtype))); }

Value* lane_of(llvm::IRBuilder<>& ir, Value* v, int lane) {
  return v == nullptr || !EmitState::is_vector(v) ? v : ir.CreateExtractElement(v, static_cast<uint64_t>(lane));
}

}  // namespace

Value* MemoryEmitter::lane_loads(const loop::Scalar& scalar, Value* offset, Value* mask) {
  const loop::Buffer& buffer = s_.kernel.buffers[scalar.buffer.index];
  llvm::Type* type = s_.memory_type(buffer.dtype);
  Value* out = llvm::PoisonValue::get(s_.widened(type, s_.lanes));
  for (int lane = 0; lane < s_.lanes; ++lane) {
    const auto load = [&] {
      return read(type, element(scalar.buffer, lane_of(s_.ir, offset, lane)),
                  static_cast<uint64_t>(byte_size(buffer.dtype)), buffer);
    };
    Value* condition = lane_of(s_.ir, mask, lane);
    Value* v = condition == nullptr ? load()
                                    : index_.where(condition, load, [&] { return llvm::Constant::getNullValue(type); });
    out = s_.lanes == 1 ? v : s_.ir.CreateInsertElement(out, v, static_cast<uint64_t>(lane));
  }
  return from_memory(buffer.dtype, out);
}

Value* MemoryEmitter::raw_load(const loop::Scalar& scalar, const IndexForm& form) {
  const loop::Buffer& buffer = s_.kernel.buffers[scalar.buffer.index];
  Value* offset = nullptr;
  index_.access(form, offset);
  return read(s_.memory_type(buffer.dtype), element(scalar.buffer, offset),
              static_cast<uint64_t>(byte_size(buffer.dtype)), buffer);
}

// A masked-out load must not touch memory; it reads zeros instead.
Value* MemoryEmitter::load(const loop::Scalar& scalar, const IndexForm& form) {
  const loop::Buffer& buffer = s_.kernel.buffers[scalar.buffer.index];
  const auto align = static_cast<uint64_t>(byte_size(buffer.dtype));
  Value* mask = scalar.a.valid() ? s_.value(scalar.a) : nullptr;
  Value* offset = nullptr;
  const Access access = index_.access(form, offset);
  const bool mask_varies = mask != nullptr && EmitState::is_vector(mask);
  const size_t id = static_cast<size_t>(&scalar - s_.kernel.scalars.data());
  const bool whole = s_.whole_accesses && s_.lanes > 1 && access == Access::Contiguous && s_.schedule.whole_load[id];
  if (!mask_varies && (access == Access::Uniform || whole)) {
    llvm::Type* type = s_.register_type(buffer.dtype);
    const auto load_all = [&]() -> Value* {
      Value* pointer = element(scalar.buffer, offset);
      if (whole) return whole_load(buffer, pointer);
      return from_memory(buffer.dtype, read(s_.memory_type(buffer.dtype), pointer, align, buffer));
    };
    if (mask == nullptr) return load_all();
    return index_.where(mask, load_all,
                        [&] { return llvm::Constant::getNullValue(whole ? s_.widened(type, s_.lanes) : type); });
  }
  if (access == Access::Contiguous) offset = s_.splat(offset);
  if (access == Access::Contiguous)
    offset = s_.ir.CreateAdd(offset, s_.ir.CreateIntCast(s_.iota(), offset->getType(), /*isSigned=*/true));
  if (access == Access::Strided) {
    Value* steps = s_.ir.CreateMul(s_.iota(), s_.splat(s_.index(index_.step(form))));
    offset = s_.ir.CreateAdd(s_.splat(offset), s_.ir.CreateIntCast(steps, s_.splat(offset)->getType(), true));
  }
  return lane_loads(scalar, offset, mask);
}

void MemoryEmitter::when(Value* condition, const std::function<void()>& body) {
  if (condition == nullptr) return body();
  llvm::Function* function = s_.ir.GetInsertBlock()->getParent();
  auto* inside = llvm::BasicBlock::Create(s_.ir.getContext(), "store", function);
  auto* after = llvm::BasicBlock::Create(s_.ir.getContext(), "stored", function);
  s_.ir.CreateCondBr(condition, inside, after);
  s_.ir.SetInsertPoint(inside);
  body();
  s_.ir.CreateBr(after);
  s_.ir.SetInsertPoint(after);
}

void MemoryEmitter::store(const loop::Store& store, const IndexForm& form, bool whole) {
  Value* offset = nullptr;
  const Access access = index_.access(form, offset);
  Value* condition = store.condition.valid() ? s_.value(store.condition) : nullptr;
  const bool varies = condition != nullptr && EmitState::is_vector(condition);
  Target to{s_.kernel.buffers[store.buffer.index].dtype, store.buffer, access, offset, index_.step(form)};
  // Conditions seldom hold in any lane: they guard the reports of indices.
  when(varies ? s_.ir.CreateOrReduce(condition) : condition, [&] {
    Value* value = s_.value(store.value);
    if (store.combine) return update(store, to, value);
    if (access == Access::Uniform && !EmitState::is_vector(value) && !varies) {
      value = to_memory(to.dtype, value);
      s_.ir.CreateAlignedStore(value, element(store.buffer, offset), element_align(to.dtype));
      return;
    }
    value = to_memory(to.dtype, s_.splat(value));
    if (whole && !varies && s_.whole_accesses && access == Access::Contiguous) return whole_store(to, value);
    for (int lane = 0; lane < s_.lanes; ++lane)
      when(varies ? lane_of(s_.ir, condition, lane) : nullptr, [&] {
        s_.ir.CreateAlignedStore(lane_of(s_.ir, value, lane), element(to.buffer, lane_offset(to, lane)),
                                 element_align(to.dtype));
      });
  });
}

void MemoryEmitter::whole_store(const Target& to, Value* value) {
  const auto bytes = static_cast<uint64_t>(byte_size(to.dtype));
  const uint64_t all = bytes * static_cast<uint64_t>(s_.lanes);
  if (bytes < 4) {
    llvm::Type* words = all >= 4 ? s_.widened(s_.ir.getInt32Ty(), static_cast<int>(all / 4)) : s_.ir.getInt16Ty();
    value = s_.ir.CreateBitCast(value, words);
  }
  s_.ir.CreateAlignedStore(value, element(to.buffer, to.offset), llvm::Align(all));
}

Value* MemoryEmitter::lane_offset(const Target& to, int lane) {
  Value* at = lane_of(s_.ir, to.offset, lane);
  if (to.access != Access::Contiguous && to.access != Access::Strided) return at;
  const int64_t step = to.access == Access::Contiguous ? 1 : to.step;
  return s_.ir.CreateAdd(at, llvm::ConstantInt::get(at->getType(), static_cast<uint64_t>(step * lane), true));
}

// An atomic operation a lane; LLVM and the assembler use the form without a result.
void MemoryEmitter::update(const loop::Store& store, const Target& to, Value* value) {
  using Rmw = llvm::AtomicRMWInst;
  const bool sum = store.combine == loop::Combine::Sum, greatest = store.combine == loop::Combine::Max;
  const Rmw::BinOp op = sum ? (is_float(to.dtype) ? Rmw::FAdd : Rmw::Add) : greatest ? Rmw::Max : Rmw::Min;
  Value* condition = store.condition.valid() ? s_.value(store.condition) : nullptr;
  if (condition != nullptr && !EmitState::is_vector(condition)) condition = nullptr;  // the caller's branch
  value = s_.splat(value);
  for (int lane = 0; lane < s_.lanes; ++lane)
    when(lane_of(s_.ir, condition, lane), [&] {
      s_.ir.CreateAtomicRMW(op, element(to.buffer, lane_offset(to, lane)), lane_of(s_.ir, value, lane),
                            element_align(to.dtype), llvm::AtomicOrdering::Monotonic);
    });
}

}  // namespace cresset::codegen::nvptx
