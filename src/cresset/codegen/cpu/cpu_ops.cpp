#include "codegen/cpu/cpu_ops.h"

namespace cresset::codegen::cpu {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

// With |a / b| below half of what the mantissa holds, trunc(a / b) is the quotient or, where a / b was rounded up to an
// integer, one more; a - quotient * b and its correction are exact. Other lanes (NaN among them) are the C library's.
Value* CpuOps::fmod(Value* a, Value* b) {
  if (!EmitState::is_vector(a) || !s_.has_fma) return s_.ir.CreateFRem(a, b);
  const double most = a->getType()->getScalarType()->isDoubleTy() ? 0x1p51 : 0x1p22;
  Value* ratio = s_.ir.CreateUnaryIntrinsic(Intrinsic::fabs, s_.ir.CreateFDiv(a, b));
  Value* beyond = s_.ir.CreateNot(s_.ir.CreateFCmpOLT(ratio, s_.constant_like(a, most)));
  if (s_.mask != nullptr) beyond = s_.ir.CreateAnd(beyond, s_.mask);
  Value* quotient = s_.ir.CreateUnaryIntrinsic(Intrinsic::trunc, ratio);
  Value* whole = s_.ir.CreateUnaryIntrinsic(Intrinsic::fabs, a);
  Value* divisor = s_.ir.CreateUnaryIntrinsic(Intrinsic::fabs, b);
  Value* rest = s_.ir.CreateIntrinsic(a->getType(), Intrinsic::fma, {s_.ir.CreateFNeg(quotient), divisor, whole});
  Value* zero = s_.constant_like(a, 0);
  rest = s_.ir.CreateSelect(s_.ir.CreateFCmpOLT(rest, zero), s_.ir.CreateFAdd(rest, divisor), rest);
  rest = s_.ir.CreateSelect(s_.ir.CreateFCmpOEQ(quotient, zero), whole, rest);  // the divisor may be infinite
  rest = s_.ir.CreateBinaryIntrinsic(Intrinsic::copysign, rest, a);
  return s_.unless_any(beyond, rest, [&] { return s_.ir.CreateFRem(a, b); });
}

}  // namespace cresset::codegen::cpu
