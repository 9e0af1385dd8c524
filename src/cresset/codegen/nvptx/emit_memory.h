// Loads and stores of a thread: whole vectors, one element for all lanes, or lane by lane.
#pragma once

#include "codegen/common/emit_index.h"
#include "codegen/nvptx/gpu_state.h"

namespace cresset::codegen::nvptx {

// Index expressions whose divisors are sizes multiply instead.
class GpuIndexEmitter final : public IndexEmitter {
 public:
  explicit GpuIndexEmitter(GpuState& state) : IndexEmitter(state), gpu_(state) {}

 protected:
  llvm::Value* division(ExprId expr, llvm::Value* a, llvm::Value* b) override;

 private:
  GpuState& gpu_;
};

class MemoryEmitter {
 public:
  MemoryEmitter(GpuState& state, IndexEmitter& index) : s_(state), index_(index) {}
  llvm::Value* load(const loop::Scalar& scalar, const IndexForm& form);
  // The element of a load as it lies in memory, and as a value.
  llvm::Value* raw_load(const loop::Scalar& scalar, const IndexForm& form);
  llvm::Value* from_memory(DType dtype, llvm::Value* v);
  void store(const loop::Store& store, const IndexForm& form, bool whole);
  // Whether the machine updates elements of the dtype atomically.
  static bool can_update(DType dtype, loop::Combine combine) {
    const bool whole = dtype == DType::I32 || dtype == DType::I64;
    return whole || (combine == loop::Combine::Sum && (dtype == DType::F32 || dtype == DType::F64));
  }
  llvm::Value* round_to(DType narrow, llvm::Value* v);  // f32 -> f32 with the precision of f16/bf16

 private:
  using Access = IndexEmitter::Access;
  llvm::Value* to_memory(DType dtype, llvm::Value* v);
  llvm::Value* narrow_pairs(DType dtype, llvm::Value* f32);  // as i32, two values each
  llvm::Value* widened_bf16(llvm::Value* words);             // of i32, two values each
  llvm::Value* read(llvm::Type* type, llvm::Value* pointer, uint64_t align, const loop::Buffer& buffer);
  llvm::Value* whole_load(const loop::Buffer& buffer, llvm::Value* pointer);
  llvm::Value* lane_loads(const loop::Scalar& scalar, llvm::Value* offset, llvm::Value* mask);
  llvm::Value* element(loop::BufferId buffer, llvm::Value* offset);
  struct Target {
    DType dtype;
    loop::BufferId buffer;
    Access access;
    llvm::Value* offset;
    int step;
  };
  void whole_store(const Target& to, llvm::Value* value);
  void update(const loop::Store& store, const Target& to, llvm::Value* value);
  llvm::Value* lane_offset(const Target& to, int lane);
  void when(llvm::Value* condition, const std::function<void()>& body);  // nullptr: always

  GpuState& s_;
  IndexEmitter& index_;
};

}  // namespace cresset::codegen::nvptx
