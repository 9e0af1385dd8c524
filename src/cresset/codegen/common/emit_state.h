// The state shared by the parts of the emitter while a kernel is emitted.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <unordered_map>
#include <vector>

#include "codegen/common/kernel_plan.h"

namespace cresset::codegen {

struct EmitState {
  EmitState(const loop::Kernel& kernel, const KernelPlan& plan, llvm::Module& module)
      : kernel(kernel), plan(plan), module(module), ir(module.getContext()), values(kernel.scalars.size()) {}

  const loop::Kernel& kernel;
  const KernelPlan& plan;
  llvm::Module& module;
  llvm::IRBuilder<> ir;
  bool has_fma = false;      // fused multiply-add in hardware
  bool has_scalef = false;   // AVX-512's x * 2^n, for vectors of 16
  int sum_levels = 1;        // how often running float sums are put away: see Accumulator
  unsigned index_bits = 64;  // of index expressions, but for those that mention a scalar's value, which have 64

  std::vector<llvm::Value*> values;              // by scalar: the value in the innermost scope which computed it
  std::unordered_map<VarId, llvm::Value*> vars;  // of index_bits; the vector variable: its value in lane 0
  std::vector<llvm::Value*> buffers;             // pointers
  int lanes = 1;                                 // of the vector loop's body being emitted
  llvm::Value* mask = nullptr;                   // <lanes x i1>; nullptr: all lanes are active

  const loop::Scalar& scalar(ScalarId id) const { return kernel[id]; }
  llvm::Value* value(ScalarId id) const { return values[id.index]; }

  static bool is_vector(const llvm::Value* v) { return v->getType()->isVectorTy(); }
  llvm::Type* register_type(DType dtype);            // bool is i1
  llvm::Type* memory_type(DType dtype);              // bool and 8-bit floats are i8, bf16 is i16
  llvm::Type* widened(llvm::Type* element, int n) {  // a single lane is a plain value, never a vector of length 1
    return n == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(n));
  }
  llvm::Value* i64(int64_t v) { return ir.getInt64(static_cast<uint64_t>(v)); }
  llvm::IntegerType* index_type() { return ir.getIntNTy(index_bits); }
  llvm::Value* index(int64_t v) {
    return llvm::ConstantInt::get(index_type(), static_cast<uint64_t>(v), /*isSigned=*/true);
  }
  // An index in 64 bits.
  llvm::Value* widened_index(llvm::Value* v) { return ir.CreateSExt(v, v->getType()->getWithNewType(ir.getInt64Ty())); }
  llvm::Value* splat(llvm::Value* v) {  // vectors pass through
    return is_vector(v) || lanes == 1 ? v : ir.CreateVectorSplat(static_cast<unsigned>(lanes), v);
  }
  static unsigned lanes_of(const llvm::Value* v) {
    const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
    return type == nullptr ? 1 : type->getNumElements();
  }
  llvm::Value* splat_like(llvm::Value* like, llvm::Value* v) {
    return is_vector(like) ? ir.CreateVectorSplat(lanes_of(like), v) : v;
  }
  llvm::Value* iota();  // <0, 1, ..., lanes - 1> of index_bits
  // A constant of v's type (splat for vectors).
  llvm::Value* constant_like(llvm::Value* v, double number);
  llvm::Value* constant_int_like(llvm::Value* v, int64_t number);
  // Returns `value`, except in lanes where `condition` holds: there the value of `otherwise`, emitted in a separate
  // block.
  llvm::Value* unless_any(llvm::Value* condition, llvm::Value* value, const std::function<llvm::Value*()>& otherwise);
};

inline bool is_unsigned(DType dtype) { return dtype == DType::U8 || dtype == DType::Bool; }

}  // namespace cresset::codegen
