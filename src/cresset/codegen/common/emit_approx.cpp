#include "codegen/common/emit_approx.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>

namespace cresset::codegen {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

namespace {

// Near-minimax polynomials, fitted by reweighted least squares at 40 digits; relative errors in units of 2^-24. (exp(r)
// - 1 - r) / r^2 on |r| <= ln(2) / 2: 0.05 of exp(r).
constexpr double kExp[] = {0.4999999337315974, 0.1666651952341642, 0.041668401063091276, 0.008368851129067956,
                           0.0013814321843304577};
// (tanh(sqrt t) / sqrt t - 1) / t on t <= 0.64^2: 0.1 of tanh.
constexpr double kTanh[] = {-0.3333326951505848, 0.1333109221099552, -0.05370965456883302, 0.020538811785282603,
                            -0.005591008135700237};
// erf(sqrt t) / sqrt t - 1 on t <= 1: 0.02 of erf. The final 1 is added in the last step, unrounded.
constexpr double kErf[] = {0.1283791657266722,   -0.3761262582396059,   0.11283585145518094,  -0.026853811805725603,
                           0.005188327439514052, -0.000801019146211266, 7.853854211571401e-05};
// -log(erfc(x)) on 0.92 <= x <= 3.95: 0.03 of erf.
constexpr double kLogErfc[] = {0.0001956711767394858, 1.1276756459111528,    0.6371822121344524,    0.1039316298766645,
                               -0.022226937353630138, 0.0030432219629341535, -0.0001959377365111938};
// (sin(sqrt t) / sqrt t - 1) / t on t <= (pi / 4)^2: 0.06 of sin.
constexpr double kSin[] = {-0.16666654602276771, 0.0083321602919058799, -0.000195152181161819};
// (cos(sqrt t) - 1 + t / 2) / t^2 on t <= (pi / 4)^2: 0.002 of cos.
constexpr double kCos[] = {0.041666645670160623, -0.0013887315616747172, 2.4433082713982745e-5};
constexpr double kTanhSmall = 0.625, kTanhFlat = 10;  // tanh is close to x below, and 1 above
constexpr double kErfSmall = 0.96, kErfFlat = 3.95;

constexpr double kRounder = 12582912.0;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
constexpr double kLog2E = 1.4426950408889634;
// pi / 2 as floats, truncated instead of rounded: all are positive, so that -0 stays. A number of quarter turns has at
// most 17 bits, so the first products are exact. The error of the last part is far below the least distance of a float
// in range from a multiple of pi / 2.
constexpr double kQuarter[] = {0x1.921fb4p+0, 0x1.4442dp-24, 0x1.846988p-48};
constexpr double kMostOfWave = 1e5, kQuarters = 0.6366197723675814;
constexpr double kLn2High = 0.693145751953125, kLn2Low = 1.42860682030941723212e-6;

}  // namespace

Value* ApproxEmitter::fma(Value* a, Value* b, Value* c) {
  return s_.ir.CreateIntrinsic(a->getType(), Intrinsic::fma, {a, b, c});
}

Value* ApproxEmitter::at_most(Value* x, double limit) {
  Value* bound = number(x, limit);
  return s_.ir.CreateSelect(s_.ir.CreateFCmpOGT(x, bound), bound, x);
}

Value* ApproxEmitter::at_least(Value* x, double limit) {
  Value* bound = number(x, limit);
  return s_.ir.CreateSelect(s_.ir.CreateFCmpOLT(x, bound), bound, x);
}

Value* ApproxEmitter::horner(Value* x, std::span<const double> ascending) {
  Value* out = number(x, ascending.back());
  for (size_t i = ascending.size() - 1; i-- > 0;) out = fma(out, x, number(x, ascending[i]));
  return out;
}

ApproxEmitter::Reduced ApproxEmitter::exp_parts(Value* x) {
  llvm::Type* bits = x->getType()->getWithNewType(s_.ir.getInt32Ty());
  Value* shifted = fma(x, number(x, kLog2E), number(x, kRounder));
  Value* whole = s_.ir.CreateFSub(shifted, number(x, kRounder));
  Value* r = fma(whole, number(x, -kLn2High), x);
  r = fma(whole, number(x, -kLn2Low), r);
  Value* tail = fma(horner(r, kExp), s_.ir.CreateFMul(r, r), r);
  Value* exponent = s_.ir.CreateSub(s_.ir.CreateBitCast(shifted, bits), s_.ir.CreateBitCast(number(x, kRounder), bits));
  return {tail, s_.ir.CreateFAdd(tail, number(x, 1)), whole, exponent};
}

Value* ApproxEmitter::power_of_two(Value* exponent) {
  Value* biased = s_.ir.CreateAdd(exponent, s_.constant_int_like(exponent, 127));
  Value* bits = s_.ir.CreateShl(biased, s_.constant_int_like(exponent, 23));
  return s_.ir.CreateBitCast(bits, bits->getType()->getWithNewType(s_.ir.getFloatTy()));
}

Value* ApproxEmitter::scale(const Reduced& parts) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(parts.mantissa->getType());
  constexpr unsigned kWidth = 16;
  if (!s_.has_scalef || type == nullptr || type->getNumElements() % kWidth != 0) return nullptr;
  auto slice = [&](Value* v, unsigned start) {
    std::vector<int> lanes(kWidth);
    for (unsigned i = 0; i < kWidth; ++i) lanes[i] = static_cast<int>(start + i);
    return type->getNumElements() == kWidth ? v : s_.ir.CreateShuffleVector(v, lanes);
  };
  std::vector<Value*> pieces;
  for (unsigned start = 0; start < type->getNumElements(); start += kWidth) {
    Value* mantissa = slice(parts.mantissa, start);
    Value* everywhere = s_.ir.getInt16(0xffff);
    Value* as_set = s_.ir.getInt32(4);  // the current rounding mode
    pieces.push_back(s_.ir.CreateIntrinsic(Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                                           {mantissa, slice(parts.whole, start), mantissa, everywhere, as_set}));
  }
  return llvm::concatenateVectors(s_.ir, pieces);
}

Value* ApproxEmitter::exp_bounded(Value* x) {
  const Reduced parts = exp_parts(x);
  if (Value* scaled = scale(parts)) return scaled;
  return s_.ir.CreateFMul(parts.mantissa, power_of_two(parts.exponent));
}

// Bounds: exp(89) overflows, exp(-104) is below half the least subnormal. The scale is applied in two halves, each a
// normal number, so that overflow and subnormal results are rounded once.
Value* ApproxEmitter::exp(Value* x) {
  const Reduced parts = exp_parts(at_least(at_most(x, 89), -104));
  if (Value* scaled = scale(parts)) return scaled;
  Value* half = s_.ir.CreateAShr(parts.exponent, s_.constant_int_like(parts.exponent, 1));
  Value* rest = s_.ir.CreateSub(parts.exponent, half);
  return s_.ir.CreateFMul(s_.ir.CreateFMul(parts.mantissa, power_of_two(half)), power_of_two(rest));
}

// 2^n * tail + (2^n - 1), by halves, so that 2^n is finite whenever the result is finite. With n = 0 the result is the
// tail alone. Bounds: expm1(89) overflows, expm1(-30) is -1. The sign is the sign of x, for zeros too.
Value* ApproxEmitter::expm1(Value* x) {
  const Reduced parts = exp_parts(at_least(at_most(x, 89), -30));
  Value* half = power_of_two(s_.ir.CreateSub(parts.exponent, s_.constant_int_like(parts.exponent, 1)));
  Value* out = fma(parts.tail, half, s_.ir.CreateFSub(half, number(x, 0.5)));
  out = s_.ir.CreateFAdd(out, out);
  out = s_.ir.CreateSelect(s_.ir.CreateFCmpOEQ(parts.whole, number(x, 0)), parts.tail, out);
  return s_.ir.CreateBinaryIntrinsic(Intrinsic::copysign, out, x);
}

// Small |x|: |x| + |x|^3 P(x^2). Otherwise 1 - 2 / (exp(2|x|) + 1). The sign of x is copied last, for zeros too.
Value* ApproxEmitter::tanh(Value* x) {
  return tanh(x, [&](Value* v) { return exp_bounded(v); }, [&](Value* a, Value* b) { return s_.ir.CreateFDiv(a, b); });
}

Value* ApproxEmitter::tanh(Value* x, const Unary& exp, const Binary& divide) {
  Value* magnitude = s_.ir.CreateUnaryIntrinsic(Intrinsic::fabs, x);
  Value* square = s_.ir.CreateFMul(x, x);
  Value* small = fma(s_.ir.CreateFMul(horner(square, kTanh), square), magnitude, magnitude);
  Value* bounded = at_most(magnitude, kTanhFlat);
  Value* grown = s_.ir.CreateFAdd(exp(s_.ir.CreateFAdd(bounded, bounded)), number(x, 1));
  Value* large = s_.ir.CreateFSub(number(x, 1), divide(number(x, 2), grown));
  Value* out = s_.ir.CreateSelect(s_.ir.CreateFCmpOLT(magnitude, number(x, kTanhSmall)), small, large);
  return s_.ir.CreateBinaryIntrinsic(Intrinsic::copysign, out, x);
}

// Small |x|: |x| + |x| P(x^2). Otherwise 1 - exp(-Q(|x|)).
Value* ApproxEmitter::erf(Value* x) {
  return erf(x, [&](Value* v) { return exp_bounded(v); });
}

Value* ApproxEmitter::erf(Value* x, const Unary& exp_of_negative) {
  Value* magnitude = s_.ir.CreateUnaryIntrinsic(Intrinsic::fabs, x);
  Value* small = fma(horner(s_.ir.CreateFMul(x, x), kErf), magnitude, magnitude);
  Value* decay = exp_of_negative(s_.ir.CreateFNeg(horner(at_most(magnitude, kErfFlat), kLogErfc)));
  Value* large = s_.ir.CreateFSub(number(x, 1), decay);
  Value* out = s_.ir.CreateSelect(s_.ir.CreateFCmpOLT(magnitude, number(x, kErfSmall)), small, large);
  return s_.ir.CreateBinaryIntrinsic(Intrinsic::copysign, out, x);
}

Value* ApproxEmitter::beyond_wave(Value* x) {
  Value* magnitude = s_.ir.CreateUnaryIntrinsic(Intrinsic::fabs, x);
  Value* beyond = s_.ir.CreateNot(s_.ir.CreateFCmpOLE(magnitude, number(x, kMostOfWave)));
  return s_.mask != nullptr ? s_.ir.CreateAnd(beyond, s_.mask) : beyond;
}

ApproxEmitter::Angle ApproxEmitter::quarter_turns(Value* x) {
  llvm::Type* bits = x->getType()->getWithNewType(s_.ir.getInt32Ty());
  Value* shifted = fma(x, number(x, kQuarters), number(x, kRounder));
  Value* turns = s_.ir.CreateFSub(shifted, number(x, kRounder));
  Value* rest = x;
  for (const double part : kQuarter) rest = fma(turns, number(x, -part), rest);
  return {rest, s_.ir.CreateBitCast(shifted, bits)};  // the bits of kRounder add whole turns
}

// Sine: |rest| + |rest|^3 P(rest^2), with the sign of rest, for zeros too. Cosine: 1 - rest^2 / 2 + rest^4 Q(rest^2).
// The sign of the half turn is applied last.
Value* ApproxEmitter::wave(Value* rest, Value* quarters) {
  Value* square = s_.ir.CreateFMul(rest, rest);
  Value* magnitude = s_.ir.CreateUnaryIntrinsic(Intrinsic::fabs, rest);
  Value* sine = fma(s_.ir.CreateFMul(horner(square, kSin), square), magnitude, magnitude);
  sine = s_.ir.CreateBinaryIntrinsic(Intrinsic::copysign, sine, rest);
  Value* cosine = fma(fma(horner(square, kCos), square, number(rest, -0.5)), square, number(rest, 1));
  Value* odd = s_.ir.CreateICmpNE(s_.ir.CreateAnd(quarters, s_.constant_int_like(quarters, 1)),
                                  s_.constant_int_like(quarters, 0));
  Value* out = s_.ir.CreateSelect(odd, cosine, sine);
  Value* half =
      s_.ir.CreateShl(s_.ir.CreateAnd(quarters, s_.constant_int_like(quarters, 2)), s_.constant_int_like(quarters, 30));
  Value* turned = s_.ir.CreateXor(s_.ir.CreateBitCast(out, half->getType()), half);
  return s_.ir.CreateBitCast(turned, out->getType());
}

Value* ApproxEmitter::sin(Value* x) {
  const Angle angle = quarter_turns(x);
  return wave(angle.rest, angle.quarters);
}

Value* ApproxEmitter::cos(Value* x) {
  const Angle angle = quarter_turns(x);
  return wave(angle.rest, s_.ir.CreateAdd(angle.quarters, s_.constant_int_like(angle.quarters, 1)));
}

}  // namespace cresset::codegen
