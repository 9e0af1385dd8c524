// Transcendental functions as inline code: there is no library on the device.
#pragma once

#include "codegen/common/emit_scalar.h"
#include "codegen/nvptx/emit_memory.h"

namespace cresset::codegen::nvptx {

// The text of a division with an error of 2 units in the last place.
inline constexpr const char* kDivFull = "div.full.f32 $0, $1, $2;";

class GpuOps final : public MachineOps {
 public:
  GpuOps(GpuState& state, IndexEmitter& index, MemoryEmitter& memory) : s_(state), index_(index), memory_(memory) {}
  llvm::Value* load(const loop::Scalar& scalar, const IndexForm& form) override { return memory_.load(scalar, form); }
  llvm::Value* size(const IndexForm& form) override { return s_.widened_index(index_.emit(form)); }
  llvm::Value* round_to(DType narrow, llvm::Value* v) override { return memory_.round_to(narrow, v); }
  llvm::Value* math(loop::Op op, std::vector<llvm::Value*> operands) override;
  llvm::Value* fmod(llvm::Value* a, llvm::Value* b) override;

  // With errors of at most 2 units in the last place, on f32.
  llvm::Value* coarse_exp(llvm::Value* x);
  llvm::Value* coarse_divide(llvm::Value* a, llvm::Value* b);
  llvm::Value* coarse_tanh(llvm::Value* x);

  // Whether math() knows the operator on this dtype.
  static bool knows(loop::Op op, DType dtype);
  // Transcendental functions, and nextafter.
  static bool is_function(loop::Op op) { return (is_heavy(op) && op != loop::Op::Philox) || op == loop::Op::NextAfter; }

 private:
  llvm::Value* by_lane(const std::vector<llvm::Value*>& operands,
                       const std::function<llvm::Value*(const std::vector<llvm::Value*>&)>& f);
  llvm::Value* next_after(llvm::Value* a, llvm::Value* b);
  llvm::Value* by_doubles(loop::Op op, const std::vector<llvm::Value*>& operands);
  llvm::Value* slow_fmod(llvm::Value* a, llvm::Value* b);

  GpuState& s_;
  IndexEmitter& index_;
  MemoryEmitter& memory_;
};

}  // namespace cresset::codegen::nvptx
