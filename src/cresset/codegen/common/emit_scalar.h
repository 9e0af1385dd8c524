// Emits a scalar operator, over plain values or over lanes.
#pragma once

#include <array>

#include "codegen/common/emit_index.h"

namespace cresset::codegen {

// What devices do each in their own way.
class MachineOps {
 public:
  virtual ~MachineOps() = default;
  virtual llvm::Value* load(const loop::Scalar& scalar, const IndexForm& form) = 0;
  virtual llvm::Value* size(const IndexForm& form) = 0;  // i64
  virtual llvm::Value* round_to(DType narrow, llvm::Value* v) = 0;
  // Transcendental functions. Operands are all plain or all vectors of one length; f32 or f64.
  virtual llvm::Value* math(loop::Op op, std::vector<llvm::Value*> operands) = 0;
  virtual llvm::Value* fmod(llvm::Value* a, llvm::Value* b) = 0;
};

class ScalarEmitter {
 public:
  ScalarEmitter(EmitState& state, IndexEmitter& index, MachineOps& machine)
      : s_(state), index_(index), machine_(machine) {}

  // Emits any scalar except Reduce; operands' values are in the state.
  llvm::Value* emit(ScalarId id);

  // Max/Min with NaN propagation for floats.
  llvm::Value* extreme(bool greatest, DType dtype, llvm::Value* a, llvm::Value* b);

 private:
  llvm::Value* against_bound(const loop::Scalar& scalar);
  llvm::Value* philox(const loop::Scalar& scalar);
  llvm::Value* philox_blocks(llvm::Value* seed, llvm::Value* stream, llvm::Value* position);
  std::array<llvm::Value*, 4> philox_words(llvm::Value* seed, llvm::Value* stream, llvm::Value* counter);
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
  llvm::Value* remainder(llvm::Value* a, llvm::Value* b);

  EmitState& s_;
  IndexEmitter& index_;
  MachineOps& machine_;
};

}  // namespace cresset::codegen
