// Arithmetic notation for loop scalars: a scalar with its builder. Operands of an operation share a dtype.
#pragma once

#include "base/dtype.h"
#include "loop/kernel.h"

namespace cresset::ops {

struct S {
  loop::ScalarBuilder* builder;
  loop::ScalarId id;

  DType dtype() const { return builder->dtype(id); }
  S with(loop::ScalarId other) const { return {builder, other}; }
  // A constant of this scalar's dtype.
  S number(double value) const {
    return with(is_float(dtype()) ? builder->constant(dtype(), value)
                                  : builder->constant_int(dtype(), static_cast<int64_t>(value)));
  }
  S truth(bool value) const { return with(builder->constant_int(DType::Bool, value)); }
  S cast(DType to) const { return dtype() == to ? *this : with(builder->cast(id, to)); }
};

inline S unary(loop::Op op, S a) { return a.with(a.builder->unary(op, a.id)); }
inline S binary(loop::Op op, S a, S b) { return a.with(a.builder->binary(op, a.id, b.id)); }
inline S select(S condition, S then, S otherwise) {
  return condition.with(condition.builder->select(condition.id, then.id, otherwise.id));
}

inline S operator+(S a, S b) { return binary(loop::Op::Add, a, b); }
inline S operator-(S a, S b) { return binary(loop::Op::Sub, a, b); }
inline S operator*(S a, S b) { return binary(loop::Op::Mul, a, b); }
inline S operator/(S a, S b) { return binary(loop::Op::Div, a, b); }
inline S operator-(S a) { return unary(loop::Op::Neg, a); }
inline S operator+(S a, double b) { return a + a.number(b); }
inline S operator-(S a, double b) { return a - a.number(b); }
inline S operator*(S a, double b) { return a * a.number(b); }
inline S operator/(S a, double b) { return a / a.number(b); }
inline S operator+(double a, S b) { return b.number(a) + b; }
inline S operator-(double a, S b) { return b.number(a) - b; }
inline S operator*(double a, S b) { return b.number(a) * b; }
inline S operator/(double a, S b) { return b.number(a) / b; }

inline S eq(S a, S b) { return binary(loop::Op::Eq, a, b); }
inline S ne(S a, S b) { return binary(loop::Op::Ne, a, b); }
inline S lt(S a, S b) { return binary(loop::Op::Lt, a, b); }
inline S le(S a, S b) { return binary(loop::Op::Le, a, b); }
inline S gt(S a, S b) { return binary(loop::Op::Gt, a, b); }
inline S ge(S a, S b) { return binary(loop::Op::Ge, a, b); }
inline S eq(S a, double b) { return eq(a, a.number(b)); }
inline S ne(S a, double b) { return ne(a, a.number(b)); }
inline S lt(S a, double b) { return lt(a, a.number(b)); }
inline S le(S a, double b) { return le(a, a.number(b)); }
inline S gt(S a, double b) { return gt(a, a.number(b)); }
inline S ge(S a, double b) { return ge(a, a.number(b)); }
inline S both(S a, S b) { return binary(loop::Op::BitAnd, a, b); }
inline S either(S a, S b) { return binary(loop::Op::BitOr, a, b); }
inline S negate(S a) { return unary(loop::Op::BitNot, a); }  // of a bool

inline S maximum(S a, S b) { return binary(loop::Op::Maximum, a, b); }  // NaN wins
inline S minimum(S a, S b) { return binary(loop::Op::Minimum, a, b); }
inline S abs(S a) { return unary(loop::Op::Abs, a); }
inline S exp(S a) { return unary(loop::Op::Exp, a); }
inline S expm1(S a) { return unary(loop::Op::Expm1, a); }
inline S log(S a) { return unary(loop::Op::Log, a); }
inline S log1p(S a) { return unary(loop::Op::Log1p, a); }
inline S sqrt(S a) { return unary(loop::Op::Sqrt, a); }
inline S tanh(S a) { return unary(loop::Op::Tanh, a); }
inline S erf(S a) { return unary(loop::Op::Erf, a); }
inline S floor(S a) { return unary(loop::Op::Floor, a); }
inline S trunc(S a) { return unary(loop::Op::Trunc, a); }
inline S is_nan(S a) { return unary(loop::Op::IsNan, a); }
inline S sigmoid(S x) { return 1.0 / (1.0 + exp(-x)); }

}  // namespace cresset::ops
