// Symbolic index expressions as i64 code.
#pragma once

#include "codegen/emit_state.h"

namespace cresset::codegen {

class IndexEmitter {
 public:
  explicit IndexEmitter(EmitState& state) : s_(state) {}

  // i64, or <lanes x i64> when lanes differ.
  llvm::Value* emit(ExprId expr);
  // The same, using that the form is linear in the vector variable.
  llvm::Value* emit(const IndexForm& form);

  enum class Access { Uniform, Contiguous, Scattered };
  // How lanes' addresses lie; `offset`: of lane 0 (i64) for Uniform and Contiguous, of every lane for Scattered.
  Access access(const IndexForm& form, llvm::Value*& offset);

 private:
  bool is_vector(ExprId expr) const;
  llvm::Value* variable(VarId var);
  llvm::Value* fold_operands(ExprId expr);
  llvm::Value* combine(ExprId expr, llvm::Value* a, llvm::Value* b);
  llvm::Value* division(ExprId expr, llvm::Value* a, llvm::Value* b);
  llvm::Value* relation(llvm::CmpInst::Predicate predicate, llvm::Value* a, llvm::Value* b);
  llvm::Value* truth(llvm::Value* v);
  uint16_t depth_of(ExprId expr) const;

  EmitState& s_;
};

}  // namespace cresset::codegen
