#include "codegen/nvptx/emit_math.h"

#include <llvm/IR/InlineAsm.h>

#include "codegen/common/emit_approx.h"
#include "codegen/nvptx/emit_double.h"

namespace cresset::codegen::nvptx {

using llvm::Value;
using loop::Op;
namespace Intrinsic = llvm::Intrinsic;

bool GpuOps::knows(Op op, DType dtype) {
  if (op == Op::NextAfter) return true;
  return dtype == DType::F32 ? DoubleFunctions::knows(op) : DoubleFunctions::is_close(op);
}

Value* GpuOps::by_lane(const std::vector<Value*>& operands,
                       const std::function<Value*(const std::vector<Value*>&)>& f) {
  const unsigned lanes = EmitState::lanes_of(operands[0]);
  if (lanes == 1) return f(operands);
  Value* out = nullptr;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    std::vector<Value*> one;
    for (Value* operand : operands) one.push_back(s_.ir.CreateExtractElement(operand, lane));
    Value* v = f(one);
    if (out == nullptr) out = llvm::PoisonValue::get(s_.widened(v->getType(), static_cast<int>(lanes)));
    out = s_.ir.CreateInsertElement(out, v, lane);
  }
  return out;
}

Value* GpuOps::math(Op op, std::vector<Value*> operands) {
  if (op == Op::NextAfter) return next_after(operands[0], operands[1]);
  if (operands[0]->getType()->getScalarType()->isDoubleTy()) return DoubleFunctions(s_).emit(op, operands);
  ApproxEmitter approx(s_);
  if (op == Op::Exp) return approx.exp(operands[0]);
  if (op == Op::Expm1) return approx.expm1(operands[0]);
  if (op == Op::Tanh) return approx.tanh(operands[0]);
  if (op == Op::Erf) return approx.erf(operands[0], [&](Value* v) { return coarse_exp(v); });
  if (op != Op::Sin && op != Op::Cos) return by_doubles(op, operands);
  Value* beyond = approx.beyond_wave(operands[0]);
  Value* near = op == Op::Sin ? approx.sin(operands[0]) : approx.cos(operands[0]);
  const auto far = [&] { return by_doubles(op, operands); };
  if (!EmitState::is_vector(near)) return index_.where(beyond, far, [&] { return near; });
  return s_.unless_any(beyond, near, far);
}

// 2^(x log2(e)) by the machine's function. The rounding of the product leaves a relative error of 2^-17 in the greatest
// and least results.
Value* GpuOps::coarse_exp(Value* x) {
  constexpr double kLog2E = 1.4426950408889634;
  Value* scaled = s_.ir.CreateFMul(x, s_.constant_like(x, kLog2E));
  return by_lane({scaled}, [&](const std::vector<Value*>& one) -> Value* {
    return s_.ir.CreateIntrinsic(Intrinsic::nvvm_ex2_approx_f, {}, {one[0]});
  });
}

// div.full: division with scaled operands, in no rounding mode.
Value* GpuOps::coarse_divide(Value* a, Value* b) {
  llvm::Type* f32 = s_.ir.getFloatTy();
  auto* type = llvm::FunctionType::get(f32, {f32, f32}, false);
  auto* full = llvm::InlineAsm::get(type, kDivFull, "=f,f,f", /*hasSideEffects=*/false);
  return by_lane({a, b}, [&](const std::vector<Value*>& one) -> Value* { return s_.ir.CreateCall(type, full, one); });
}

Value* GpuOps::coarse_tanh(Value* x) {
  return ApproxEmitter(s_).tanh(
      x, [&](Value* v) { return coarse_exp(v); }, [&](Value* a, Value* b) { return coarse_divide(a, b); });
}

Value* GpuOps::by_doubles(Op op, const std::vector<Value*>& operands) {
  // Polynomials in doubles for several lanes at once do not fit into the registers.
  if (EmitState::is_vector(operands[0]))
    return by_lane(operands, [&](const std::vector<Value*>& one) { return by_doubles(op, one); });
  llvm::Type* type = operands[0]->getType();
  std::vector<Value*> wide;
  for (Value* v : operands) wide.push_back(s_.ir.CreateFPExt(v, type->getWithNewType(s_.ir.getDoubleTy())));
  return s_.ir.CreateFPTrunc(DoubleFunctions(s_).emit(op, wide), type);
}

// One more or one less as a whole number, away from zero or towards it.
Value* GpuOps::next_after(Value* a, Value* b) {
  llvm::IRBuilder<>& ir = s_.ir;
  Value* bits = ir.CreateBitCast(a, a->getType()->getWithNewType(ir.getIntNTy(a->getType()->getScalarSizeInBits())));
  Value *zero = s_.constant_like(a, 0), *one = s_.constant_int_like(bits, 1);
  Value* away = ir.CreateICmpEQ(ir.CreateFCmpOLT(a, b), ir.CreateFCmpOGT(a, zero));
  Value* next = ir.CreateSelect(away, ir.CreateAdd(bits, one), ir.CreateSub(bits, one));
  Value* out = ir.CreateBitCast(next, a->getType());
  Value* least = ir.CreateBinaryIntrinsic(Intrinsic::copysign, ir.CreateBitCast(one, a->getType()), b);
  out = ir.CreateSelect(ir.CreateFCmpOEQ(a, zero), least, out);
  out = ir.CreateSelect(ir.CreateFCmpOEQ(a, b), b, out);
  return ir.CreateSelect(ir.CreateFCmpUNO(a, b), ir.CreateFAdd(a, b), out);
}

// As on the CPU: where the quotient is small its whole part is exact. Elsewhere bits are divided.
Value* GpuOps::fmod(Value* a, Value* b) {
  llvm::IRBuilder<>& ir = s_.ir;
  const double most = a->getType()->getScalarType()->isDoubleTy() ? 0x1p51 : 0x1p22;
  Value* ratio = ir.CreateUnaryIntrinsic(Intrinsic::fabs, ir.CreateFDiv(a, b));
  Value* beyond = ir.CreateNot(ir.CreateFCmpOLT(ratio, s_.constant_like(a, most)));
  Value* quotient = ir.CreateUnaryIntrinsic(Intrinsic::trunc, ratio);
  Value* whole = ir.CreateUnaryIntrinsic(Intrinsic::fabs, a);
  Value* divisor = ir.CreateUnaryIntrinsic(Intrinsic::fabs, b);
  Value* rest = ir.CreateIntrinsic(a->getType(), Intrinsic::fma, {ir.CreateFNeg(quotient), divisor, whole});
  Value* zero = s_.constant_like(a, 0);
  rest = ir.CreateSelect(ir.CreateFCmpOLT(rest, zero), ir.CreateFAdd(rest, divisor), rest);
  rest = ir.CreateSelect(ir.CreateFCmpOEQ(quotient, zero), whole, rest);  // the divisor may be infinite
  rest = ir.CreateBinaryIntrinsic(Intrinsic::copysign, rest, a);
  const auto exact = [&] {
    return by_lane({a, b}, [&](const std::vector<Value*>& one) { return slow_fmod(one[0], one[1]); });
  };
  if (!EmitState::is_vector(a)) return index_.where(beyond, exact, [&] { return rest; });
  return s_.unless_any(beyond, rest, exact);
}

// Of one value: mantissas as whole numbers, the quotient's bits eleven at a time. Exact; floats are doubles.
Value* GpuOps::slow_fmod(Value* a, Value* b) {
  llvm::IRBuilder<>& ir = s_.ir;
  llvm::Type* f64 = ir.getDoubleTy();
  llvm::Type* given = a->getType();
  a = ir.CreateFPCast(a, f64);
  b = ir.CreateFPCast(b, f64);
  auto parts = [&](Value* v) {  // exponent, mantissa: v == mantissa * 2^(exponent - 1075)
    Value* bits = ir.CreateAnd(ir.CreateBitCast(v, ir.getInt64Ty()), ir.getInt64(0x7fffffffffffffff));
    Value* exponent = ir.CreateLShr(bits, 52);
    Value* mantissa = ir.CreateAnd(bits, ir.getInt64(0xfffffffffffff));
    Value* normal = ir.CreateICmpNE(exponent, ir.getInt64(0));
    mantissa = ir.CreateSelect(normal, ir.CreateOr(mantissa, ir.getInt64(uint64_t{1} << 52)), mantissa);
    return std::pair(ir.CreateSelect(normal, exponent, ir.getInt64(1)), mantissa);
  };
  const auto [a_exponent, a_mantissa] = parts(a);
  auto [b_exponent, b_mantissa] = parts(b);
  b_mantissa = ir.CreateBinaryIntrinsic(Intrinsic::umax, b_mantissa, ir.getInt64(1));
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  auto* loop = llvm::BasicBlock::Create(ir.getContext(), "bits", function);
  auto* done = llvm::BasicBlock::Create(ir.getContext(), "divided", function);
  Value* first = ir.CreateURem(a_mantissa, b_mantissa);
  Value* apart = ir.CreateSub(a_exponent, b_exponent);
  llvm::BasicBlock* before = ir.GetInsertBlock();
  ir.CreateCondBr(ir.CreateICmpSGT(apart, ir.getInt64(0)), loop, done);
  ir.SetInsertPoint(loop);
  llvm::PHINode* rest = ir.CreatePHI(ir.getInt64Ty(), 2);
  llvm::PHINode* left = ir.CreatePHI(ir.getInt64Ty(), 2);
  Value* step = ir.CreateBinaryIntrinsic(Intrinsic::smin, left, ir.getInt64(11));
  Value* next = ir.CreateURem(ir.CreateShl(rest, step), b_mantissa);
  Value* fewer = ir.CreateSub(left, step);
  rest->addIncoming(first, before);
  rest->addIncoming(next, loop);
  left->addIncoming(apart, before);
  left->addIncoming(fewer, loop);
  ir.CreateCondBr(ir.CreateICmpSGT(fewer, ir.getInt64(0)), loop, done);
  ir.SetInsertPoint(done);
  llvm::PHINode* all = ir.CreatePHI(ir.getInt64Ty(), 2);
  all->addIncoming(first, before);
  all->addIncoming(next, loop);
  // all * 2^(b_exponent - 1075), in two steps that are both exact.
  auto power = [&](Value* exponent) {
    return ir.CreateBitCast(ir.CreateShl(ir.CreateAdd(exponent, ir.getInt64(1023)), 52), f64);
  };
  Value* scale = ir.CreateSub(b_exponent, ir.getInt64(1075));
  Value* half = ir.CreateAShr(scale, 1);
  Value* out = ir.CreateFMul(ir.CreateUIToFP(all, f64), power(half));
  out = ir.CreateFMul(out, power(ir.CreateSub(scale, half)));
  Value* magnitude = ir.CreateUnaryIntrinsic(Intrinsic::fabs, a);
  Value* divisor = ir.CreateUnaryIntrinsic(Intrinsic::fabs, b);
  out = ir.CreateSelect(ir.CreateFCmpOLT(magnitude, divisor), magnitude, out);
  Value* infinity = llvm::ConstantFP::getInfinity(f64);
  Value* none = ir.CreateOr(ir.CreateNot(ir.CreateFCmpOLT(magnitude, infinity)),
                            ir.CreateNot(ir.CreateFCmpOGT(divisor, llvm::ConstantFP::get(f64, 0))));
  out = ir.CreateSelect(none, llvm::ConstantFP::getNaN(f64), out);
  return ir.CreateFPCast(ir.CreateBinaryIntrinsic(Intrinsic::copysign, out, a), given);
}

}  // namespace cresset::codegen::nvptx
