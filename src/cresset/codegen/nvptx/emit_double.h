// Transcendental functions of f64 as inline code, within 2 units in the last place. Those of f32 that have no code of
// their own (emit_approx.h) are computed with these. Polynomials are minimax fits at 50 digits.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "codegen/nvptx/gpu_state.h"

namespace cresset::codegen::nvptx {

// A value that math is written with: operators make instructions.
struct Num {
  llvm::IRBuilder<>* ir;
  llvm::Value* v;

  Num make(llvm::Value* other) const { return {ir, other}; }
  Num number(double c) const { return make(llvm::ConstantFP::get(v->getType(), c)); }
  friend Num operator+(Num a, Num b) { return a.make(a.ir->CreateFAdd(a.v, b.v)); }
  friend Num operator-(Num a, Num b) { return a.make(a.ir->CreateFSub(a.v, b.v)); }
  friend Num operator*(Num a, Num b) { return a.make(a.ir->CreateFMul(a.v, b.v)); }
  friend Num operator/(Num a, Num b) { return a.make(a.ir->CreateFDiv(a.v, b.v)); }
  friend Num operator+(Num a, double b) { return a + a.number(b); }
  friend Num operator-(Num a, double b) { return a - a.number(b); }
  friend Num operator*(Num a, double b) { return a * a.number(b); }
  friend Num operator-(double a, Num b) { return b.number(a) - b; }
  friend Num operator/(double a, Num b) { return b.number(a) / b; }
  friend Num operator-(Num a) { return a.make(a.ir->CreateFNeg(a.v)); }
  // Ordered: false for NaN.
  friend llvm::Value* operator<(Num a, double b) { return a.ir->CreateFCmpOLT(a.v, a.number(b).v); }
  friend llvm::Value* operator>(Num a, double b) { return a.ir->CreateFCmpOGT(a.v, a.number(b).v); }
  friend llvm::Value* operator<(Num a, Num b) { return a.ir->CreateFCmpOLT(a.v, b.v); }
  llvm::Value* equals(double b) const { return ir->CreateFCmpOEQ(v, number(b).v); }
  Num unary(llvm::Intrinsic::ID id) const { return make(ir->CreateUnaryIntrinsic(id, v)); }
  Num abs() const { return unary(llvm::Intrinsic::fabs); }
  Num sqrt() const { return unary(llvm::Intrinsic::sqrt); }
  Num with_sign_of(Num s) const { return make(ir->CreateBinaryIntrinsic(llvm::Intrinsic::copysign, v, s.v)); }
  Num select(llvm::Value* condition, Num otherwise) const { return make(ir->CreateSelect(condition, v, otherwise.v)); }
  Num select(llvm::Value* condition, double otherwise) const { return select(condition, number(otherwise)); }
};

class DoubleFunctions {
 public:
  explicit DoubleFunctions(GpuState& state) : s_(state) {}
  static bool knows(loop::Op op);
  // Whether the result is as close as an f64 wants it; else it serves f32 only.
  static bool is_close(loop::Op op);
  llvm::Value* emit(loop::Op op, const std::vector<llvm::Value*>& operands);  // f64, plain or lanes

 private:
  // A value and what its rounding left.
  struct Twin {
    Num high, low;
  };
  struct Angle {
    Num high, low;          // the rest, at most pi / 4
    llvm::Value* quarters;  // i64: quarter turns
  };

  Num fma(Num a, Num b, Num c);
  Num horner(Num x, std::span<const double> ascending);
  Num scaled(Num x, llvm::Value* exponent);  // x * 2^exponent, for results down to subnormal ones
  llvm::Value* whole_number(Num x, Num& rounded);
  struct Reduced {
    Num tail;               // exp(rest) - 1
    llvm::Value* exponent;  // i64
    Num whole;
  };
  Reduced exp_parts(Num x);
  Num exp(Num x);
  Num exp2(Num x);
  Num expm1(Num x);
  Num log(Num x);
  Twin log_parts(Num x, Num& exponent);  // x == exp(high + low) * 2^exponent
  Num log_in_base(Num x, double per_e, double per_two);
  Num log1p(Num x);
  Num pow(Num a, Num b);
  Num sinh(Num x);
  Num cosh(Num x);
  Num tanh(Num x);
  Num asinh(Num x);
  Num acosh(Num x);
  Num atanh(Num x);
  Num atan(Num x);
  Num atan_up_to_one(Num x);
  Num atan2(Num y, Num x);
  Num asin(Num x);
  Num acos(Num x);
  Num erf(Num x);
  Num erfc(Num x);
  Num erfc_of_positive(Num x);
  Num lgamma(Num x);
  Num hypot(Num a, Num b);
  Angle near_quarters(Num x);
  Angle far_quarters(Num x);  // one value
  Angle quarters_of(Num x);
  Num sine(const Angle& a, bool quarter_later);
  Num tan(Num x);
  llvm::Constant* two_over_pi();

  GpuState& s_;
};

}  // namespace cresset::codegen::nvptx
