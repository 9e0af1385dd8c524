#include "codegen/common/emit_state.h"

#include <llvm/IR/MDBuilder.h>

namespace cresset::codegen {

llvm::Type* EmitState::register_type(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return ir.getInt1Ty();
    case DType::U8:
    case DType::I8:
      return ir.getInt8Ty();
    case DType::I16:
      return ir.getInt16Ty();
    case DType::I32:
      return ir.getInt32Ty();
    case DType::I64:
      return ir.getInt64Ty();
    case DType::F16:
    case DType::BF16:
    case DType::F32:
      return ir.getFloatTy();
    case DType::F64:
      return ir.getDoubleTy();
    default:
      break;
  }
  CRESSET_CHECK(category(dtype) == DTypeCategory::Float8, "kernels hold no values of this dtype");
  return ir.getFloatTy();
}

llvm::Type* EmitState::memory_type(DType dtype) {
  if (dtype == DType::Bool) return ir.getInt8Ty();
  if (dtype == DType::BF16) return ir.getInt16Ty();
  if (dtype == DType::F16) return ir.getHalfTy();
  if (category(dtype) == DTypeCategory::Float8) return ir.getInt8Ty();
  return register_type(dtype);
}

llvm::Value* EmitState::iota() {
  std::vector<llvm::Constant*> elements;
  for (int i = 0; i < lanes; ++i) elements.push_back(llvm::ConstantInt::get(index_type(), static_cast<uint64_t>(i)));
  return llvm::ConstantVector::get(elements);
}

llvm::Value* EmitState::constant_like(llvm::Value* v, double number) {
  return llvm::ConstantFP::get(v->getType(), number);
}
llvm::Value* EmitState::constant_int_like(llvm::Value* v, int64_t number) {
  return llvm::ConstantInt::get(v->getType(), static_cast<uint64_t>(number), /*isSigned=*/true);
}

llvm::Value* EmitState::unless_any(llvm::Value* condition, llvm::Value* value,
                                   const std::function<llvm::Value*()>& otherwise) {
  llvm::BasicBlock* before = ir.GetInsertBlock();
  llvm::Function* function = before->getParent();
  llvm::BasicBlock* rare = llvm::BasicBlock::Create(ir.getContext(), "rare", function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(ir.getContext(), "after", function);
  llvm::MDNode* unlikely = llvm::MDBuilder(ir.getContext()).createBranchWeights(1, 1000);
  ir.CreateCondBr(ir.CreateOrReduce(condition), rare, after, unlikely);
  ir.SetInsertPoint(rare);
  llvm::Value* exact = otherwise();
  llvm::BasicBlock* rare_end = ir.GetInsertBlock();
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
  llvm::PHINode* out = ir.CreatePHI(value->getType(), 2);
  out->addIncoming(value, before);
  out->addIncoming(exact, rare_end);
  return out;
}

}  // namespace cresset::codegen
