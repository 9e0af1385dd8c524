// Transcendental functions: inline code, calls into the vector-math library by width, or calls into libm lane by lane.
#pragma once

#include "codegen/cpu/cpu_state.h"

namespace cresset::codegen::cpu {

class MathEmitter {
 public:
  explicit MathEmitter(CpuState& state) : s_(state) {}
  // Operands are all scalars or all vectors of the same length; f32 or f64.
  llvm::Value* emit(loop::Op op, std::vector<llvm::Value*> operands);

 private:
  llvm::Value* call(loop::Op op, const std::vector<llvm::Value*>& operands);
  llvm::Value* call_scalar(loop::Op op, const std::vector<llvm::Value*>& operands);
  llvm::Value* call_by_lane(loop::Op op, const std::vector<llvm::Value*>& operands);
  llvm::Value* call_by_vector(const char* name, int width, const std::vector<llvm::Value*>& operands);
  llvm::Value* slice(llvm::Value* v, int start, int count);
  llvm::FunctionCallee declare(const std::string& name, llvm::Type* type, size_t operands);

  CpuState& s_;
};

}  // namespace cresset::codegen::cpu
