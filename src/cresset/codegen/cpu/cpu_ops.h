// The CPU's part of scalar operators: memory, library functions, and what is quick on vectors.
#pragma once

#include "codegen/common/emit_scalar.h"
#include "codegen/cpu/emit_math.h"
#include "codegen/cpu/emit_memory.h"

namespace cresset::codegen::cpu {

class CpuOps final : public MachineOps {
 public:
  CpuOps(CpuState& state, IndexEmitter& index, MemoryEmitter& memory)
      : s_(state), index_(index), memory_(memory), math_(state) {}
  llvm::Value* load(const loop::Scalar& scalar, const IndexForm& form) override { return memory_.load(scalar, form); }
  llvm::Value* size(const IndexForm& form) override { return index_.emit_in_runs(form); }
  llvm::Value* round_to(DType narrow, llvm::Value* v) override { return memory_.round_to(narrow, v); }
  llvm::Value* math(loop::Op op, std::vector<llvm::Value*> operands) override {
    return math_.emit(op, std::move(operands));
  }
  llvm::Value* fmod(llvm::Value* a, llvm::Value* b) override;

 private:
  CpuState& s_;
  IndexEmitter& index_;
  MemoryEmitter& memory_;
  MathEmitter math_;
};

}  // namespace cresset::codegen::cpu
