// Loads and stores: contiguous, uniform, strided, gathered; conversions between memory and register types.
#pragma once

#include "codegen/common/emit_index.h"
#include "codegen/cpu/cpu_state.h"

namespace cresset::codegen::cpu {

class MemoryEmitter {
 public:
  MemoryEmitter(CpuState& state, IndexEmitter& index) : s_(state), index_(index) {}

  llvm::Value* load(const loop::Scalar& scalar, const IndexForm& form);
  void store(const loop::Store& store, const IndexForm& form);

  llvm::Value* from_memory(DType dtype, llvm::Value* v);
  llvm::Value* to_memory(DType dtype, llvm::Value* v);
  llvm::Value* round_to(DType narrow, llvm::Value* v);  // f32 -> f32 with the precision of f16/bf16

 private:
  llvm::Value* bf16_bits(llvm::Value* f32);  // rounded, as i16
  llvm::Value* bf16_by_machine(llvm::Value* f32);
  llvm::Value* bf16_by_hand(llvm::Value* f32);
  llvm::Value* high_half(llvm::Value* f32);    // truncated
  llvm::Value* lane_mask(llvm::Value* extra);  // mask of the body combined with the load's mask; nullptr: all lanes
  llvm::Value* spread_mask(llvm::Value* mask, int step, int part);
  llvm::Value* strided_load(llvm::Type* type, llvm::Value* pointer, int step, llvm::Align align, llvm::Value* mask);
  struct Masked {
    llvm::Align align;
    llvm::Value* mask;  // nullptr: all lanes
  };
  void strided_store(llvm::Value* value, llvm::Value* pointer, int step, Masked how);
  void store_where(llvm::Value* condition, llvm::Value* value, llvm::Value* pointer, llvm::Align align);
  // The lanes of an access. `access` classifies their addresses from `offset` on, `step` elements apart.
  struct Lanes {
    llvm::Type* type;
    llvm::Value* buffer;
    llvm::Align align;
    llvm::Value* mask;
  };
  llvm::Value* lanes_load(const Lanes& lanes, IndexEmitter::Access access, llvm::Value* offset, int step);
  llvm::Value* run_load(const Lanes& lanes, const IndexEmitter::Run& run, const IndexForm& form);
  llvm::Value* has_memory(const loop::Scalar& scalar);  // i1; nullptr: certainly
  llvm::Value* uniform_load(llvm::Type* type, llvm::Value* pointer, llvm::Value* condition, llvm::Align align);

  CpuState& s_;
  IndexEmitter& index_;
};

}  // namespace cresset::codegen::cpu
