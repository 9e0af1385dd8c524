// What the parts of the CPU's emitter share beside the common state.
#pragma once

#include "codegen/common/emit_state.h"
#include "codegen/cpu/schedule.h"
#include "codegen/cpu/symbol_resolver.h"

namespace cresset::codegen::cpu {

struct CpuState : EmitState {
  CpuState(const loop::Kernel& kernel, const Schedule& schedule, llvm::Module& module)
      : EmitState(kernel, schedule, module), schedule(schedule) {}

  const Schedule& schedule;
  SymbolResolver resolver = nullptr;
  int vector_bits = 128;
  bool has_bf16 = false;  // f32 to bf16 by vectors of 16
  llvm::Value* scratch = nullptr;
  llvm::Value* zeros = nullptr;  // pointer to 8 readable bytes of zero
};

}  // namespace cresset::codegen::cpu
