#include "codegen/cpu/emit_math.h"

#include <fmt/format.h>
#include <llvm/Analysis/VectorUtils.h>

#include "codegen/common/emit_approx.h"

namespace cresset::codegen::cpu {
namespace {

using llvm::Value;
using loop::Op;

struct MathName {
  Op op;
  const char* libm;   // f64 name; f32 appends an f
  const char* sleef;  // Sleef's name and accuracy; the vector type goes in between
  const char* accuracy;
};
constexpr MathName kNames[] = {
    {Op::Exp, "exp", "exp", "u10"},       {Op::Exp2, "exp2", "exp2", "u10"},
    {Op::Expm1, "expm1", "expm1", "u10"}, {Op::Log, "log", "log", "u10"},
    {Op::Log2, "log2", "log2", "u10"},    {Op::Log10, "log10", "log10", "u10"},
    {Op::Log1p, "log1p", "log1p", "u10"}, {Op::Sin, "sin", "sin", "u10"},
    {Op::Cos, "cos", "cos", "u10"},       {Op::Tan, "tan", "tan", "u10"},
    {Op::Asin, "asin", "asin", "u10"},    {Op::Acos, "acos", "acos", "u10"},
    {Op::Atan, "atan", "atan", "u10"},    {Op::Sinh, "sinh", "sinh", "u10"},
    {Op::Cosh, "cosh", "cosh", "u10"},    {Op::Tanh, "tanh", "tanh", "u10"},
    {Op::Asinh, "asinh", "asinh", "u10"}, {Op::Acosh, "acosh", "acosh", "u10"},
    {Op::Atanh, "atanh", "atanh", "u10"}, {Op::Erf, "erf", "erf", "u10"},
    {Op::Erfc, "erfc", "erfc", "u15"},    {Op::Lgamma, "lgamma", "lgamma", "u10"},
    {Op::Pow, "pow", "pow", "u10"},       {Op::Atan2, "atan2", "atan2", "u10"},
    {Op::Hypot, "hypot", "hypot", "u05"}, {Op::NextAfter, "nextafter", "nextafter", ""},
};

const MathName& names_of(Op op) {
  for (const MathName& row : kNames)
    if (row.op == op) return row;
  CRESSET_CHECK(false, "operator is no library function");
}

}  // namespace

Value* MathEmitter::emit(Op op, std::vector<Value*> operands) {
  if (s_.has_fma && operands[0]->getType()->getScalarType()->isFloatTy()) {
    ApproxEmitter approx(s_);
    if (op == Op::Exp) return approx.exp(operands[0]);
    if (op == Op::Expm1) return approx.expm1(operands[0]);
    if (op == Op::Tanh) return approx.tanh(operands[0]);
    if (op == Op::Erf) return approx.erf(operands[0]);
    if ((op == Op::Sin || op == Op::Cos) && EmitState::is_vector(operands[0])) {
      Value* beyond = approx.beyond_wave(operands[0]);
      Value* near = op == Op::Sin ? approx.sin(operands[0]) : approx.cos(operands[0]);
      return s_.unless_any(beyond, near, [&] { return call(op, operands); });
    }
  }
  return call(op, operands);
}

Value* MathEmitter::call(Op op, const std::vector<Value*>& operands) {
  if (!EmitState::is_vector(operands[0])) return call_scalar(op, operands);
  const int lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(operands[0]->getType())->getNumElements());
  const bool is_double = operands[0]->getType()->getScalarType()->isDoubleTy();
  const MathName& row = names_of(op);
  for (int width = s_.vector_bits / (is_double ? 64 : 32); width > 1; width /= 2) {
    if (width > lanes || s_.resolver == nullptr) continue;
    std::string name = fmt::format("Sleef_{}{}{}", row.sleef, is_double ? "d" : "f", width);
    if (*row.accuracy != '\0') name += fmt::format("_{}", row.accuracy);
    if (s_.resolver(name.c_str()) != nullptr) return call_by_vector(name.c_str(), width, operands);
  }
  return call_by_lane(op, operands);
}

// Library functions only compute: they access no memory, and no caller reads errno.
llvm::FunctionCallee MathEmitter::declare(const std::string& name, llvm::Type* type, size_t operands) {
  const std::vector<llvm::Type*> parameters(operands, type);
  llvm::FunctionCallee callee = s_.module.getOrInsertFunction(name, llvm::FunctionType::get(type, parameters, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  return callee;
}

Value* MathEmitter::call_scalar(Op op, const std::vector<Value*>& operands) {
  llvm::Type* type = operands[0]->getType();
  const std::string name = std::string(names_of(op).libm) + (type->isDoubleTy() ? "" : "f");
  return s_.ir.CreateCall(declare(name, type, operands.size()), operands);
}

Value* MathEmitter::call_by_lane(Op op, const std::vector<Value*>& operands) {
  auto* type = llvm::cast<llvm::FixedVectorType>(operands[0]->getType());
  Value* out = llvm::PoisonValue::get(type);
  for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
    std::vector<Value*> elements;
    for (Value* operand : operands) elements.push_back(s_.ir.CreateExtractElement(operand, lane));
    out = s_.ir.CreateInsertElement(out, call_scalar(op, elements), lane);
  }
  return out;
}

Value* MathEmitter::slice(Value* v, int start, int count) {
  std::vector<int> lanes;
  for (int i = 0; i < count; ++i) lanes.push_back(start + i);
  return s_.ir.CreateShuffleVector(v, lanes);
}

Value* MathEmitter::call_by_vector(const char* name, int width, const std::vector<Value*>& operands) {
  auto* type = llvm::cast<llvm::FixedVectorType>(operands[0]->getType());
  const int lanes = static_cast<int>(type->getNumElements());
  llvm::FunctionCallee callee = declare(name, s_.widened(type->getElementType(), width), operands.size());
  std::vector<Value*> parts;
  for (int start = 0; start < lanes; start += width) {
    std::vector<Value*> arguments;
    for (Value* operand : operands) arguments.push_back(lanes == width ? operand : slice(operand, start, width));
    parts.push_back(s_.ir.CreateCall(callee, arguments));
  }
  return llvm::concatenateVectors(s_.ir, parts);
}

}  // namespace cresset::codegen::cpu
