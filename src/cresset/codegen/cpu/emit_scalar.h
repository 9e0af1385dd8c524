// Emits a scalar operator, over plain values or over lanes.
#pragma once

#include "codegen/cpu/emit_math.h"
#include "codegen/cpu/emit_memory.h"

namespace cresset::codegen::cpu {

class ScalarEmitter {
 public:
  ScalarEmitter(EmitState& state, IndexEmitter& index, MemoryEmitter& memory)
      : s_(state), index_(index), memory_(memory), math_(state) {}

  // Emits any scalar except Reduce; operands' values are in the state.
  llvm::Value* emit(ScalarId id);

  // Max/Min with NaN propagation for floats.
  llvm::Value* extreme(bool greatest, DType dtype, llvm::Value* a, llvm::Value* b);

 private:
  llvm::Value* against_bound(const loop::Scalar& scalar);
  llvm::Value* constant(const loop::Scalar& scalar);
  llvm::Value* cast(DType from, DType to, llvm::Value* v);
  llvm::Value* bit_cast(DType from, DType to, llvm::Value* v);
  llvm::Value* compute(const loop::Scalar& scalar, DType from, llvm::Value* const* operands);
  llvm::Value* float_unary(const loop::Scalar& scalar, llvm::Value* a);
  llvm::Value* float_binary(const loop::Scalar& scalar, llvm::Value* a, llvm::Value* b);
  llvm::Value* integer_unary(const loop::Scalar& scalar, llvm::Value* a);
  llvm::Value* integer_binary(const loop::Scalar& scalar, llvm::Value* a, llvm::Value* b);
  llvm::Value* comparison(loop::Op op, DType from, llvm::Value* a, llvm::Value* b);
  llvm::Value* divide(loop::Op op, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* shift(loop::Op op, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* sign(DType dtype, llvm::Value* a);
  llvm::Value* fmod(llvm::Value* a, llvm::Value* b);
  llvm::Value* remainder(llvm::Value* a, llvm::Value* b);

  EmitState& s_;
  IndexEmitter& index_;
  MemoryEmitter& memory_;
  MathEmitter math_;
};

}  // namespace cresset::codegen::cpu
