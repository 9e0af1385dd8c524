#include "codegen/emit_memory.h"

namespace cresset::codegen {

using llvm::Value;

Value* MemoryEmitter::bf16_bits(Value* v) {
  llvm::Type* wide = v->getType()->getWithNewType(s_.ir.getInt32Ty());
  Value* bits = s_.ir.CreateBitCast(v, wide);
  auto number = [&](int64_t n) { return s_.constant_int_like(bits, n); };
  Value* odd = s_.ir.CreateAnd(s_.ir.CreateLShr(bits, number(16)), number(1));
  Value* rounded = s_.ir.CreateAdd(bits, s_.ir.CreateAdd(odd, number(0x7fff)));
  Value* nan = s_.ir.CreateOr(bits, number(0x400000));
  Value* kept = s_.ir.CreateSelect(s_.ir.CreateFCmpUNO(v, v), nan, rounded);
  return s_.ir.CreateLShr(kept, number(16));
}

Value* MemoryEmitter::from_memory(DType dtype, Value* v) {
  if (dtype == DType::Bool) return s_.ir.CreateICmpNE(v, s_.constant_int_like(v, 0));
  if (dtype == DType::F16) return s_.ir.CreateFPExt(v, v->getType()->getWithNewType(s_.ir.getFloatTy()));
  if (dtype != DType::BF16) return v;
  Value* wide = s_.ir.CreateZExt(v, v->getType()->getWithNewType(s_.ir.getInt32Ty()));
  Value* bits = s_.ir.CreateShl(wide, s_.constant_int_like(wide, 16));
  return s_.ir.CreateBitCast(bits, v->getType()->getWithNewType(s_.ir.getFloatTy()));
}

Value* MemoryEmitter::to_memory(DType dtype, Value* v) {
  llvm::Type* type = v->getType()->getWithNewType(s_.memory_type(dtype));
  if (dtype == DType::Bool) return s_.ir.CreateZExt(v, type);
  if (dtype == DType::F16) return s_.ir.CreateFPTrunc(v, type);
  if (dtype == DType::BF16) return s_.ir.CreateTrunc(bf16_bits(v), type);
  return v;
}

Value* MemoryEmitter::round_to(DType narrow, Value* v) {
  if (narrow == DType::F16) return from_memory(narrow, to_memory(narrow, v));
  Value* bits = bf16_bits(v);
  return s_.ir.CreateBitCast(s_.ir.CreateShl(bits, s_.constant_int_like(bits, 16)), v->getType());
}

Value* MemoryEmitter::lane_mask(Value* extra) {
  if (extra == nullptr) return s_.mask;
  extra = s_.splat(extra);
  return s_.mask == nullptr ? extra : s_.ir.CreateAnd(s_.mask, extra);
}

// A masked-out load must not touch memory; it reads zeros instead.
Value* MemoryEmitter::uniform_load(llvm::Type* type, Value* pointer, Value* condition, llvm::Align align) {
  if (condition != nullptr) pointer = s_.ir.CreateSelect(condition, pointer, s_.zeros);
  return s_.ir.CreateAlignedLoad(type, pointer, align);
}

Value* MemoryEmitter::load(const loop::Scalar& scalar, const IndexForm& form) {
  const DType dtype = s_.kernel.buffers[scalar.buffer.index].dtype;
  llvm::Type* element = s_.memory_type(dtype);
  const llvm::Align align(static_cast<uint64_t>(byte_size(dtype)));
  Value* own_mask = scalar.a.valid() ? s_.value(scalar.a) : nullptr;
  Value* offset = nullptr;
  IndexEmitter::Access access = index_.access(form, offset);
  const bool mask_varies = own_mask != nullptr && EmitState::is_vector(own_mask);
  if (access == IndexEmitter::Access::Uniform && mask_varies) {
    offset = s_.splat(offset);
    access = IndexEmitter::Access::Scattered;
  }
  Value* pointer = s_.ir.CreateGEP(element, s_.buffers[scalar.buffer.index], offset);
  if (access == IndexEmitter::Access::Uniform)
    return from_memory(dtype, uniform_load(element, pointer, own_mask, align));

  llvm::Type* type = s_.widened(element, s_.lanes);
  Value* mask = lane_mask(own_mask);
  Value* out = nullptr;
  if (access == IndexEmitter::Access::Scattered) {
    if (mask == nullptr) mask = s_.splat(s_.ir.getTrue());
    out = s_.ir.CreateMaskedGather(type, pointer, align, mask, llvm::Constant::getNullValue(type));
  } else if (mask != nullptr) {
    out = s_.ir.CreateMaskedLoad(type, pointer, align, mask, llvm::Constant::getNullValue(type));
  } else {
    out = s_.ir.CreateAlignedLoad(type, pointer, align);
  }
  return from_memory(dtype, out);
}

void MemoryEmitter::store(const loop::Store& store, const IndexForm& form) {
  const DType dtype = s_.kernel.buffers[store.buffer.index].dtype;
  const llvm::Align align(static_cast<uint64_t>(byte_size(dtype)));
  Value* offset = nullptr;
  IndexEmitter::Access access = index_.access(form, offset);
  Value* value = to_memory(dtype, s_.value(store.value));
  if (access == IndexEmitter::Access::Uniform && EmitState::is_vector(value)) {
    offset = s_.splat(offset);
    access = IndexEmitter::Access::Scattered;
  }
  Value* pointer = s_.ir.CreateGEP(s_.memory_type(dtype), s_.buffers[store.buffer.index], offset);
  if (access == IndexEmitter::Access::Uniform) {
    s_.ir.CreateAlignedStore(value, pointer, align);
    return;
  }
  value = s_.splat(value);
  if (access == IndexEmitter::Access::Scattered) {
    Value* mask = s_.mask != nullptr ? s_.mask : s_.splat(s_.ir.getTrue());
    s_.ir.CreateMaskedScatter(value, pointer, align, mask);
  } else if (s_.mask != nullptr) {
    s_.ir.CreateMaskedStore(value, pointer, align, s_.mask);
  } else {
    s_.ir.CreateAlignedStore(value, pointer, align);
  }
}

}  // namespace cresset::codegen
