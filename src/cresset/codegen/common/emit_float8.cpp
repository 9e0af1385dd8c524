#include "codegen/common/emit_float8.h"

#include "loop/float8.h"

namespace cresset::codegen {
namespace {

using llvm::Value;

constexpr uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000, kNan = 0x7fc00000;

// Words of 32 bits, in as many lanes as a value has.
class Words {
 public:
  Words(EmitState& state, Value* like) : ir(state.ir), like_(like) {}

  Value* number(uint32_t n) { return llvm::ConstantInt::get(type(ir.getInt32Ty()), n); }
  Value* exponent(int e) { return number(static_cast<uint32_t>(e) << 23); }
  llvm::Type* type(llvm::Type* element) { return like_->getType()->getWithNewType(element); }
  Value* as_float(Value* bits) { return ir.CreateBitCast(bits, type(ir.getFloatTy())); }
  Value* as_bits(Value* number) { return ir.CreateBitCast(number, type(ir.getInt32Ty())); }
  Value* choose(Value* condition, uint32_t code, Value* otherwise) {
    return ir.CreateSelect(condition, number(code), otherwise);
  }

  llvm::IRBuilder<>& ir;

 private:
  Value* like_;
};

}  // namespace

Value* float8_to_float(EmitState& state, DType dtype, Value* codes) {
  const loop::Float8Format f = loop::float8_format(dtype);
  Words w(state, codes);
  llvm::IRBuilder<>& ir = w.ir;
  Value* code = ir.CreateZExt(codes, w.type(ir.getInt32Ty()));
  Value* magnitude = ir.CreateAnd(code, w.number(0x7f));
  const auto shift = static_cast<uint32_t>(23 - f.mantissa);
  Value* normal = ir.CreateAdd(ir.CreateShl(magnitude, w.number(shift)), w.exponent(127 - f.bias));
  Value* whole = ir.CreateUIToFP(magnitude, w.type(ir.getFloatTy()));
  Value* small = w.as_bits(ir.CreateFMul(whole, state.constant_like(whole, f.least_subnormal())));
  Value* is_small = ir.CreateICmpULT(magnitude, w.number(1u << f.mantissa));
  Value* bits = ir.CreateSelect(is_small, small, normal);
  if (f.has_infinity) bits = w.choose(ir.CreateICmpEQ(magnitude, w.number(f.overflow)), kInfinity, bits);
  Value* nan = !f.has_negative_zero() ? ir.CreateICmpEQ(code, w.number(f.nan))
                                      : ir.CreateICmpUGT(magnitude, w.number(f.before_nan()));
  bits = w.choose(nan, kNan, bits);
  Value* sign = ir.CreateShl(ir.CreateAnd(code, w.number(0x80)), w.number(24));
  return w.as_float(ir.CreateOr(bits, sign));
}

Value* float_to_float8(EmitState& state, DType dtype, Value* numbers) {
  const loop::Float8Format f = loop::float8_format(dtype);
  Words w(state, numbers);
  llvm::IRBuilder<>& ir = w.ir;
  Value* bits = w.as_bits(numbers);
  Value* magnitude = ir.CreateAnd(bits, w.number(kMagnitude));
  const auto shift = static_cast<uint32_t>(23 - f.mantissa);
  Value* sum = ir.CreateFAdd(w.as_float(magnitude), w.as_float(w.number(f.magic())));
  Value* small = ir.CreateSub(w.as_bits(sum), w.number(f.magic()));
  Value* odd = ir.CreateAnd(ir.CreateLShr(magnitude, w.number(shift)), w.number(1));
  Value* rounded = ir.CreateAdd(ir.CreateAdd(magnitude, w.number((1u << (shift - 1)) - 1)), odd);
  Value* normal = ir.CreateLShr(ir.CreateSub(rounded, w.exponent(127 - f.bias)), w.number(shift));
  Value* code = ir.CreateSelect(ir.CreateICmpULT(magnitude, w.number(f.least_normal())), small, normal);
  code = w.choose(ir.CreateICmpUGE(magnitude, w.number(f.limit)), f.overflow, code);
  code = w.choose(ir.CreateICmpUGT(magnitude, w.number(kInfinity)), f.nan, code);
  Value* sign = ir.CreateAnd(ir.CreateLShr(bits, w.number(24)), w.number(0x80));
  Value* with_sign = ir.CreateOr(code, sign);
  if (!f.has_negative_zero()) with_sign = ir.CreateSelect(ir.CreateICmpEQ(code, w.number(0)), code, with_sign);
  return ir.CreateTrunc(with_sign, w.type(ir.getInt8Ty()));
}

}  // namespace cresset::codegen
