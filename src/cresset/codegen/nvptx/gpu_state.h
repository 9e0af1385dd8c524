// What the parts of the GPU's emitter share beside the common state.
#pragma once

#include <llvm/IR/IntrinsicsNVPTX.h>

#include "codegen/common/emit_state.h"
#include "codegen/nvptx/schedule.h"

namespace cresset::codegen::nvptx {

// LLVM's numbers of NVPTX's address spaces.
inline constexpr unsigned kGlobal = 1, kShared = 3;

struct GpuState : EmitState {
  GpuState(const loop::Kernel& kernel, const Schedule& schedule, llvm::Module& module)
      : EmitState(kernel, schedule, module), schedule(schedule) {
    has_fma = true;
  }

  const Schedule& schedule;
  bool whole_accesses = false;                     // lanes of neighbours are one vector access
  std::unordered_map<ExprId, llvm::Value*> magic;  // by divisor: i64, see magic_of
  llvm::Value* special(llvm::Intrinsic::ID id) { return ir.CreateIntrinsic(id, {}, {}); }
  // A condition that all lanes share, as a mask.
  llvm::Value* splat_mask(llvm::Value* condition) { return splat(condition); }

  // n / divisor by its multiplier, for 0 <= n < 2^31.
  llvm::Value* divide(llvm::Value* n, llvm::Value* magic_number) {
    llvm::Type* wide = n->getType()->getWithNewType(ir.getInt64Ty());
    llvm::Value* multiplier = ir.CreateAnd(magic_number, ir.getInt64(0xffffffff));
    llvm::Value* shift = ir.CreateLShr(magic_number, 32);
    if (is_vector(n)) {
      multiplier = splat_like(n, multiplier);
      shift = splat_like(n, shift);
    }
    llvm::Value* product = ir.CreateMul(ir.CreateZExt(n, wide), multiplier, "", /*HasNUW=*/true);
    return ir.CreateTrunc(ir.CreateLShr(product, shift), n->getType());
  }
};

}  // namespace cresset::codegen::nvptx
