#include "codegen/nvptx/emit_double.h"

#include <array>
#include <limits>

namespace cresset::codegen::nvptx {

using llvm::Value;
using loop::Op;
namespace Intrinsic = llvm::Intrinsic;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// (atan(sqrt z) / sqrt z - 1) / z, z <= (7/16)^2: 2e-17.
constexpr double kAtan[] = {-0.33333333333333326, 0.1999999999998777,  -0.1428571428314864,  0.11111110900560475,
                            -0.09090900195560148, 0.07692087348767168, -0.06663239299107136, 0.05847724720645106,
                            -0.05033942776485848, 0.03782521866106712, -0.017547235157290005};
// (asin(sqrt z) / sqrt z - 1) / z, z <= 1/4: 6e-17.
constexpr double kAsin[] = {0.1666666666666665,    0.07500000000020764,  0.044642857103423646,  0.03038194736709848,
                            0.02237204763174451,   0.017355259955786323, 0.013929652902326633,  0.011875494382636922,
                            0.0078029494773533175, 0.01603551434914882,  -0.010749050339697808, 0.028169218060881414};
// (sin(sqrt z) / sqrt z - 1) / z and (cos(sqrt z) - 1 + z / 2) / z^2, z <= (pi/4)^2.
constexpr double kSin[] = {-0.16666666666666666,  0.008333333333330948,    -0.00019841269836758574,
                           2.755731610255244e-06, -2.5051131845003624e-08, 1.5918129294866608e-10};
constexpr double kCos[] = {0.041666666666666664,    -0.0013888888888887398, 2.480158729876569e-05,
                           -2.7557317271729793e-07, 2.08761462684032e-09,   -1.1382632425521717e-11};
// (exp(r) - 1 - r) / r^2, |r| <= ln(2) / 2: 2e-19.
constexpr double kExp[] = {0.5,
                           0.1666666666666667,
                           0.04166666666666667,
                           0.008333333333326136,
                           0.0013888888888883748,
                           0.00019841269874820627,
                           2.4801587325547743e-05,
                           2.7557255400206422e-06,
                           2.75572736431103e-07,
                           2.5105217004720745e-08,
                           2.0914686968086876e-09};
// 2 (atanh(s) / s - 1) / s^2 over s^2 <= 0.1716^2: 3e-20 of the logarithm.
constexpr double kLog[] = {0.6666666666666666,  0.4000000000000088, 0.2857142857080329,  0.222222223917858,
                           0.18181795632452163, 0.1538624012056702, 0.13268761951330021, 0.13086743139119072};
// erf(sqrt z) / sqrt z - 1, z <= 0.85^2: 1e-17.
constexpr double kErf[] = {0.12837916709551256,     -0.3761263890318335,     0.11283791670932594,
                           -0.026866170640255645,   0.00522397757126982,     -0.0008548323506677763,
                           0.00012055190337021296,  -1.4921921653420798e-05, 1.6399123262977372e-06,
                           -1.5697115571004142e-07, 1.0675693706713948e-08};
// (1 + 2x) exp(x^2) erfc(x) over t = (x - 4) / (x + 4), for 0.02 <= x <= 27: 1e-17.
constexpr double kErfc[] = {
    1.2329951186255526,     -0.13962111684056283,    0.015379652102620652,    0.06809705425472934,
    -0.10103906603635009,   0.09373283499704488,     -0.06633036581148802,    0.03716751555892068,
    -0.01619773406072886,   0.0050319697833130115,   -0.0007577733226513447,  -0.00019925562979900552,
    0.00015062213431742342, -2.440284779795887e-05,  -1.1224428334544331e-05, 5.717414432825759e-06,
    3.006719833477452e-07,  -8.348533444484076e-07,  6.338887200037058e-08,   1.1537954764499352e-07,
    -8.00082868865099e-09,  -1.3771947962128276e-08, -1.8184280609997226e-09};

constexpr double kRounder = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves the nearest integer in the low bits
constexpr double kLog2E = 1.4426950408889634, kLog10E = 0.4342944819032518;
constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;  // products with exponents are exact
constexpr double kLn2 = 0.6931471805599453;
constexpr double kLog10Of2High = 0x1.34413508p-2, kLog10Of2Low = 0x1.f79fef311f12bp-34;
constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
constexpr double kQuarterPi = 0x1.921fb54442d18p-1, kQuarterPiLow = 0x1.1a62633145c07p-55;
constexpr double kPi = 0x1.921fb54442d18p+1;
constexpr double kAtanHalf = 0x1.dac670561bb4fp-2, kAtanHalfLow = 0x1.a2b7f222f65e2p-56;
// pi / 2 in parts of 33 bits: products with up to 20 bits of quarter turns are exact.
constexpr double kQuarter[] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69, 0x1.b839a252049c1p-104};
constexpr double kTwoOverPi = 0.6366197723675814, kMostNear = 0x1p19;

// 2 / pi: a word of zeros, then its binary places.
constexpr std::array<uint64_t, 21> kTwoOverPiBits = {0,
                                                     0xa2f9836e4e441529,
                                                     0xfc2757d1f534ddc0,
                                                     0xdb6295993c439041,
                                                     0xfe5163abdebbc561,
                                                     0xb7246e3a424dd2e0,
                                                     0x06492eea09d1921c,
                                                     0xfe1deb1cb129a73e,
                                                     0xe88235f52ebb4484,
                                                     0xe99c7026b45f7e41,
                                                     0x3991d639835339f4,
                                                     0x9c845f8bbdf9283b,
                                                     0x1ff897ffde05980f,
                                                     0xef2f118b5a0a6d1f,
                                                     0x6d367ecf27cb09b7,
                                                     0x4f463f669e5fea2d,
                                                     0x7527bac7ebe5f17b,
                                                     0x3d0739f78a5292ea,
                                                     0x6bfb5fb11f8d5d08,
                                                     0x56033046fc7b6bab,
                                                     0xf0cfbc209af4361d};

}  // namespace

bool DoubleFunctions::knows(Op op) { return is_heavy(op); }

bool DoubleFunctions::is_close(Op op) { return knows(op) && op != Op::Lgamma; }

Num DoubleFunctions::fma(Num a, Num b, Num c) {
  return a.make(s_.ir.CreateIntrinsic(a.v->getType(), Intrinsic::fma, {a.v, b.v, c.v}));
}

Num DoubleFunctions::horner(Num x, std::span<const double> ascending) {
  Num out = x.number(ascending.back());
  for (size_t i = ascending.size() - 1; i-- > 0;) out = fma(out, x, x.number(ascending[i]));
  return out;
}

// The nearest whole number, for |x| < 2^51, also as an i64.
Value* DoubleFunctions::whole_number(Num x, Num& rounded) {
  const Num shifted = x + kRounder;
  rounded = shifted - kRounder;
  Value* bits = s_.ir.CreateBitCast(shifted.v, x.v->getType()->getWithNewType(s_.ir.getInt64Ty()));
  // kRounder's own bits are zero below its 51st, which whole numbers of either sign are counted from.
  Value* low = s_.ir.CreateShl(bits, s_.constant_int_like(bits, 13));
  return s_.ir.CreateAShr(low, s_.constant_int_like(bits, 13));
}

// In two halves, each a normal power: results that are subnormal are rounded once.
Num DoubleFunctions::scaled(Num x, Value* exponent) {
  auto power = [&](Value* e) {
    Value* biased = s_.ir.CreateShl(s_.ir.CreateAdd(e, s_.constant_int_like(e, 1023)), s_.constant_int_like(e, 52));
    return x.make(s_.ir.CreateBitCast(biased, x.v->getType()));
  };
  Value* half = s_.ir.CreateAShr(exponent, s_.constant_int_like(exponent, 1));
  return x * power(half) * power(s_.ir.CreateSub(exponent, half));
}

DoubleFunctions::Reduced DoubleFunctions::exp_parts(Num x) {
  Num whole = x;
  Value* exponent = whole_number(x * kLog2E, whole);
  const Num high = fma(whole, x.number(-kLn2High), x);
  const Num r = fma(whole, x.number(-kLn2Low), high);
  const Num lost = fma(whole, x.number(-kLn2Low), high - r);  // what rounding r left
  return {fma(horner(r, kExp), r * r, lost) + r, exponent, whole};
}

Num DoubleFunctions::exp(Num x) {
  x = x.number(710).select(x > 710, x);
  x = x.number(-746).select(x < -746, x);
  const Reduced parts = exp_parts(x);
  return scaled(parts.tail + 1, parts.exponent);
}

Num DoubleFunctions::exp2(Num x) {
  x = x.number(1025).select(x > 1025, x);
  x = x.number(-1076).select(x < -1076, x);
  Num whole = x;
  Value* exponent = whole_number(x, whole);
  const Num part = x - whole;
  const Num r = part * kLn2;
  const Num lost = fma(part, x.number(kLn2), -r) + part * 2.3190468138462996e-17;
  return scaled(fma(horner(r, kExp), r * r, lost) + r + 1, exponent);
}

Num DoubleFunctions::expm1(Num x) {
  const Num given = x;
  x = x.number(710).select(x > 710, x);
  x = x.number(-40).select(x < -40, x);
  const Reduced parts = exp_parts(x);
  Value* less = s_.ir.CreateSub(parts.exponent, s_.constant_int_like(parts.exponent, 1));
  const Num half = scaled(x.number(1), less);
  Num out = fma(parts.tail, half, half - 0.5);
  out = out + out;
  return parts.tail.select(parts.whole.equals(0), out).with_sign_of(given);
}

// x == 2^exponent * m, m in [sqrt(1/2), sqrt(2)): with f = m - 1, s = f / (2 + f), log(m) = f - f^2/2 + s (f^2/2 + R).
DoubleFunctions::Twin DoubleFunctions::log_parts(Num x, Num& exponent) {
  Value* tiny = x < 0x1p-1022;
  x = (x * 0x1p54).select(tiny, x);
  llvm::Type* i64 = x.v->getType()->getWithNewType(s_.ir.getInt64Ty());
  Value* bits = s_.ir.CreateBitCast(x.v, i64);
  constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd;
  Value* above = s_.ir.CreateSub(bits, llvm::ConstantInt::get(i64, kRootHalf));
  Value* e = s_.ir.CreateAShr(above, s_.constant_int_like(above, 52));
  Value* mantissa = s_.ir.CreateSub(bits, s_.ir.CreateShl(e, s_.constant_int_like(e, 52)));
  const Num f = x.make(s_.ir.CreateBitCast(mantissa, x.v->getType())) - 1;
  exponent = x.make(s_.ir.CreateSIToFP(e, x.v->getType()));
  exponent = (exponent - 54).select(tiny, exponent);
  const Num s = f / (f + 2), z = s * s, half = f * f * 0.5;
  return {f, s * (half + z * horner(z, kLog)) - half};
}

namespace {

// What a logarithm is of zero, infinity, NaN and what is below zero.
Num log_specials(Num x, Num out) {
  out = out.select(x < kInfinity, x);  // infinity and NaN
  out = x.number(-kInfinity).select(x.equals(0), out);
  return x.number(kNan).select(x < 0.0, out);
}

}  // namespace

Num DoubleFunctions::log(Num x) {
  Num exponent = x;
  const Twin parts = log_parts(x, exponent);
  const Num out = exponent * kLn2High + (parts.high + (parts.low + exponent * kLn2Low));
  return log_specials(x, out);
}

// The logarithm's two parts, each times what turns it into the other base: the greater one is cut so that it is exact.
Num DoubleFunctions::log_in_base(Num x, double per_e, double per_two) {
  Num exponent = x;
  const Twin parts = log_parts(x, exponent);
  const Num high = parts.high + parts.low, low = (parts.high - high) + parts.low;
  const Num product = high * per_e;
  const bool two = per_two == 1;
  const double rest_of_per_e = two ? 2.0355273740931033e-17 : 1.098319650216765e-17;
  Num left = fma(high, x.number(per_e), -product) + fma(low, x.number(per_e), high * rest_of_per_e);
  Num whole = exponent;
  if (!two) {
    whole = exponent * kLog10Of2High;
    left = fma(exponent, x.number(kLog10Of2Low), left);
  }
  const Num sum = whole + product;
  const Num lost = product - (sum - whole);  // |whole| is the greater, or zero
  return log_specials(x, sum + (lost + left));
}

Num DoubleFunctions::log1p(Num x) {
  const Num u = x + 1;
  const Num correction = (x - (u - 1)).select(u < 0x1p53, x.number(0)) / u;
  Num exponent = x;
  const Twin parts = log_parts(u, exponent);
  Num out = exponent * kLn2High + (parts.high + (parts.low + (exponent * kLn2Low + correction)));
  out = log_specials(u, out);
  return x.select(x.abs() < 0x1p-54, out);  // and the sign of zeros
}

// exp(b log a): the logarithm in two parts, for the product needs more places than one has.
Num DoubleFunctions::pow(Num a, Num b) {
  const Num magnitude = a.abs();
  Num exponent = a;
  // s = f / (2 + f) with its rest, then 2 s + s^3 R.
  const Twin rough = log_parts(magnitude, exponent);
  const Num f = rough.high, divisor = f + 2, divisor_low = (2.0 - divisor) + f;
  const Num s = f / divisor;
  const Num s_low = (fma(-s, divisor, f) - s * divisor_low) / divisor;
  const Num z = s * s;
  const Num cubes = s * z;
  const Num cubes_low = fma(s, z, -cubes) + fma(s, s, -z) * s + s_low * z * 3;
  // 2/3 s^3 is large enough to be needed to its own rest.
  const Num third = cubes * (2.0 / 3),
            third_low = fma(cubes, a.number(2.0 / 3), -third) + cubes_low * (2.0 / 3) + cubes * 3.700743415417188e-17;
  std::array<double, std::size(kLog) - 1> rest{};
  for (size_t i = 0; i < rest.size(); ++i) rest[i] = kLog[i + 1];
  const Num further = cubes * z * horner(z, rest);
  const Num twice = s + s;
  Num high = twice + third;
  Num low = (twice - high) + third + (s_low + s_low + third_low + further);
  // exponent * ln 2.
  const Num whole = exponent * kLn2High;
  const Num all = whole + high;
  low = ((whole - all) + high).select(exponent.abs() > 0.5, (high - all) + whole) + low + exponent * kLn2Low;
  high = all + low;
  low = (all - high) + low;
  // The product, and its exponential.
  Num product = b * high;
  const Num product_low = fma(b, high, -product) + b * low;
  product = product.number(800).select(product > 800, product);
  product = product.number(-800).select(product < -800, product);
  const Reduced parts = exp_parts(product);
  const Num grown = parts.tail + 1;
  const Num finite = product_low.select(product_low.abs() < 1, 0.0);
  Num out = scaled(fma(grown, finite, grown), parts.exponent);
  // Specials, the most special last.
  llvm::IRBuilder<>& ir = s_.ir;
  const Num nan = a.number(kNan), inf = a.number(kInfinity), zero = a.number(0), one = a.number(1);
  const Num half_b = b * 0.5;
  Value* is_whole = ir.CreateFCmpOEQ(b.unary(Intrinsic::trunc).v, b.v);
  Value* is_odd = ir.CreateAnd(is_whole, ir.CreateFCmpONE(half_b.unary(Intrinsic::trunc).v, half_b.v));
  Value* below = ir.CreateFCmpOLT(a.v, zero.v);
  out = nan.select(ir.CreateAnd(below, ir.CreateNot(is_whole)), out);
  const Num grows = inf.select(b > 0.0, zero), shrinks = zero.select(b > 0.0, inf);
  out = shrinks.select(magnitude.equals(0), out);
  out = grows.select(magnitude.equals(kInfinity), out);
  out = out.abs().with_sign_of(a).select(is_odd, out);
  Value* huge = ir.CreateFCmpOEQ(b.abs().v, inf.v);
  const Num by_size = inf.select(ir.CreateXor(magnitude < 1.0, b > 0.0), zero);
  out = one.select(magnitude.equals(1), by_size).select(huge, out);
  out = nan.select(ir.CreateFCmpUNO(a.v, b.v), out);
  return one.select(ir.CreateOr(b.equals(0), a.equals(1)), out);
}

Num DoubleFunctions::sinh(Num x) {
  const Num m = x.abs();
  const Num t = expm1(m.select(m < 22.0, 22.0));
  const Num small = (t + t - t * t / (t + 1)) * 0.5, medium = (t + t / (t + 1)) * 0.5;
  const Num half = exp(m * 0.5);
  const Num large = half * 0.5 * half;
  Num out = medium.select(m < 22.0, large);
  out = small.select(m < 1.0, out);
  return x.select(m < 0x1p-28, out.with_sign_of(x));
}

Num DoubleFunctions::cosh(Num x) {
  const Num m = x.abs();
  const Num t = expm1(m.select(m < 1.0, 1.0));
  const Num small = t * t / ((t + 1) * 2) + 1;
  const Num half = exp(m * 0.5);
  const Num medium = exp(m.select(m < 22.0, 22.0));
  const Num out = (medium * 0.5 + 0.5 / medium).select(m < 22.0, half * 0.5 * half);
  return small.select(m < 0.35, out);
}

Num DoubleFunctions::tanh(Num x) {
  const Num m = x.abs(), bounded = m.select(m < 22.0, 22.0);
  const Num t = expm1(bounded + bounded), u = expm1(-(bounded + bounded));
  Num out = 1.0 - 2.0 / (t + 2);
  out = (-u / (u + 2)).select(m < 1.0, out);
  out = out.make(s_.ir.CreateSelect(s_.ir.CreateFCmpUNO(x.v, x.v), x.v, out.v));
  return out.with_sign_of(x);
}

Num DoubleFunctions::asinh(Num x) {
  const Num m = x.abs(), square = m * m;
  const Num small = log1p(m + square / ((square + 1).sqrt() + 1));
  const Num medium = log(m + m + 1.0 / ((square + 1).sqrt() + m));
  Num out = medium.select(m < 0x1p28, log(m) + kLn2);
  out = small.select(m < 2.0, out);
  return out.with_sign_of(x);
}

Num DoubleFunctions::acosh(Num x) {
  const Num t = x - 1;
  const Num small = log1p(t + (t + t + t * t).sqrt());
  const Num medium = log(x + x - 1.0 / (x + (x * x - 1).sqrt()));
  Num out = medium.select(x < 0x1p28, log(x) + kLn2);
  out = small.select(x < 2.0, out);
  return x.number(kNan).select(x < 1.0, out);
}

Num DoubleFunctions::atanh(Num x) {
  const Num m = x.abs(), twice = m + m;
  const Num small = log1p(twice + twice * m / (1.0 - m)), large = log1p(twice / (1.0 - m));
  return (small.select(m < 0.5, large) * 0.5).with_sign_of(x);
}

// In [0, 1], about 0, 1/2 or 1.
Num DoubleFunctions::atan_up_to_one(Num x) {
  Value *low = x < 0.4375, *middle = x < 0.6875;
  const Num about_half = (x + x - 1) / (x + 2), about_one = (x - 1) / (x + 1);
  const Num r = x.select(low, about_half.select(middle, about_one));
  const Num zero = x.number(0);
  const Num base = zero.select(low, x.number(kAtanHalf).select(middle, x.number(kQuarterPi)));
  const Num base_low = zero.select(low, x.number(kAtanHalfLow).select(middle, x.number(kQuarterPiLow)));
  const Num z = r * r;
  return base + (r + fma(r * z, horner(z, kAtan), base_low));
}

Num DoubleFunctions::atan(Num x) {
  const Num m = x.abs();
  Value* large = m > 1.0;
  const Num inner = atan_up_to_one((1.0 / m).select(large, m));
  const Num outer = kHalfPi - (inner - kHalfPiLow);
  return outer.select(large, inner).with_sign_of(x);
}

Num DoubleFunctions::atan2(Num y, Num x) {
  llvm::IRBuilder<>& ir = s_.ir;
  const Num up = y.abs(), across = x.abs();
  Value* steep = ir.CreateFCmpOGT(up.v, across.v);
  const Num least = across.select(steep, up), most = up.select(steep, across);
  Num ratio = least / most;
  ratio = ratio.number(0).select(most.equals(0), ratio);
  Value* both_infinite = ir.CreateFCmpOEQ(least.v, x.number(kInfinity).v);
  ratio = ratio.number(1).select(both_infinite, ratio);
  Num out = atan_up_to_one(ratio);
  out = (kHalfPi - (out - kHalfPiLow)).select(steep, out);
  llvm::Type* i64 = x.v->getType()->getWithNewType(ir.getInt64Ty());
  Value* bits = ir.CreateBitCast(x.v, i64);
  Value* left = ir.CreateICmpSLT(bits, llvm::Constant::getNullValue(i64));  // -0 too
  out = (kPi - (out - 2 * kHalfPiLow)).select(left, out).with_sign_of(y);
  return x.number(kNan).select(ir.CreateFCmpUNO(x.v, y.v), out);
}

// |x| <= 1/2: x + x^3 P. Else pi/2 - 2 asin(sqrt((1 - |x|) / 2)), the root with its rest.
Num DoubleFunctions::asin(Num x) {
  const Num m = x.abs();
  const Num z = x * x;
  const Num small = fma(x * z, horner(z, kAsin), x);
  const Num w = (1.0 - m) * 0.5, root = w.sqrt();
  const Num root_low = fma(-root, root, w) / (root + root);
  const Num rest = root_low.select(w > 0.0, 0.0);
  const Num twice = (root + fma(root * w, horner(w, kAsin), rest)) * 2;
  const Num large = (kHalfPi - (twice - kHalfPiLow)).with_sign_of(x);
  const Num out = small.select(m < 0.5, large);
  return x.number(kNan).select(m > 1.0, out);
}

Num DoubleFunctions::acos(Num x) {
  const Num m = x.abs();
  const Num z = x * x;
  const Num small = kHalfPi - (x - (kHalfPiLow - x * z * horner(z, kAsin)));
  const Num w = (1.0 - m) * 0.5, root = w.sqrt();
  const Num rest = (fma(-root, root, w) / (root + root)).select(w > 0.0, 0.0);
  const Num twice = (root + fma(root * w, horner(w, kAsin), rest)) * 2;
  const Num large = (kPi - (twice - 2 * kHalfPiLow)).select(x < 0.0, twice);
  const Num out = small.select(m < 0.5, large);
  return x.number(kNan).select(m > 1.0, out);
}

// x > 0.02: exp(-x^2) with the square in two parts, times a rational function's fit.
Num DoubleFunctions::erfc_of_positive(Num x) {
  const Num bounded = x.select(x < 28.0, 28.0);
  const Num t = (bounded - 4) / (bounded + 4);
  const Num square = bounded * bounded, square_low = fma(bounded, bounded, -square);
  const Num decay = exp(-square);
  const Num factor = horner(t, kErfc) / (bounded + bounded + 1);
  return fma(decay * factor, -square_low, decay * factor);
}

Num DoubleFunctions::erf(Num x) {
  const Num m = x.abs();
  const Num small = fma(x, horner(x * x, kErf), x);
  const Num large = (1.0 - erfc_of_positive(m)).with_sign_of(x);
  Num out = small.select(m < 0.85, large);
  return x.select(s_.ir.CreateFCmpUNO(x.v, x.v), out);
}

Num DoubleFunctions::erfc(Num x) {
  const Num m = x.abs();
  const Num middle = 1.0 - fma(x, horner(x * x, kErf), x);
  const Num tail = erfc_of_positive(m);
  const Num out = middle.select(m < 0.4, tail.select(x > 0.0, 2.0 - tail));
  return x.select(s_.ir.CreateFCmpUNO(x.v, x.v), out);
}

// Stirling's series from 8 on; below, the product of what lies between. Left of zero by reflection.
Num DoubleFunctions::lgamma(Num x) {
  llvm::IRBuilder<>& ir = s_.ir;
  constexpr double kSeries[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156};
  constexpr double kHalfLog2Pi = 0.9189385332046728;
  Value* left = x < 0.5;
  const Num m = (1.0 - x).select(left, x);
  Num shifted = m, product = m.number(1);
  for (int i = 0; i < 8; ++i) {
    Value* below = shifted < 8.0;
    product = (product * shifted).select(below, product);
    shifted = (shifted + 1).select(below, shifted);
  }
  const Num inverse = 1.0 / shifted;
  const Num far = (shifted - 0.5) * log(shifted) - shifted + kHalfLog2Pi + inverse * horner(inverse * inverse, kSeries);
  Num out = far - log(product);
  // log(pi / |sin(pi x)|) - lgamma(1 - x)
  const Num whole = x.unary(Intrinsic::floor);
  const Num part = x - whole;
  const Num angle = (1.0 - part).select(part > 0.5, part) * kPi;
  const Num wave = Num{&ir, sine(near_quarters(angle), false).v};
  const Num reflected = log(x.number(kPi) / wave) - out;
  out = reflected.select(left, out);
  out = x.number(kInfinity).select(ir.CreateAnd(left, part.equals(0)), out);
  out = x.number(kInfinity).select(x.abs().equals(kInfinity), out);
  return x.select(ir.CreateFCmpUNO(x.v, x.v), out);
}

// Scaled by the greater one's power of two; the square root of the sum of squares with their rests.
Num DoubleFunctions::hypot(Num a, Num b) {
  llvm::IRBuilder<>& ir = s_.ir;
  const Num x = a.abs(), y = b.abs();
  Value* swapped = ir.CreateFCmpOLT(x.v, y.v);
  const Num most = y.select(swapped, x), least = x.select(swapped, y);
  Value *huge = most > 0x1p500, *tiny = most < 0x1p-500;
  const Num one = x.number(1);
  const Num down = x.number(0x1p-600).select(huge, x.number(0x1p600).select(tiny, one));
  const Num up = x.number(0x1p600).select(huge, x.number(0x1p-600).select(tiny, one));
  const Num p = most * down, q = least * down;
  const Num pp = p * p, qq = q * q;
  const Num sum = pp + qq;
  const Num lost = ((pp - sum) + qq) + (fma(p, p, -pp) + fma(q, q, -qq));
  const Num root = sum.sqrt();
  const Num mended = root + ((fma(-root, root, sum) + lost) / (root + root)).select(root > 0.0, 0.0);
  Num out = mended * up;
  out = x.number(kNan).select(ir.CreateFCmpUNO(x.v, y.v), out);
  Value* infinite = ir.CreateOr(x.equals(kInfinity), y.equals(kInfinity));
  return x.number(kInfinity).select(infinite, out);
}

// ---- angles

DoubleFunctions::Angle DoubleFunctions::near_quarters(Num x) {
  Num turns = x;
  Value* quarters = whole_number(x * kTwoOverPi, turns);
  Num rest = fma(turns, x.number(-kQuarter[0]), x);  // exact
  const Num second = fma(turns, x.number(-kQuarter[1]), rest);
  Num lost = fma(turns, x.number(-kQuarter[1]), rest - second);
  const Num third = fma(turns, x.number(-kQuarter[2]), second);
  lost = lost + fma(turns, x.number(-kQuarter[2]), second - third);
  lost = fma(turns, x.number(-kQuarter[3]), lost);
  const Num high = third + lost;
  return {high, (third - high) + lost, quarters};
}

llvm::Constant* DoubleFunctions::two_over_pi() {
  constexpr const char* kName = "two_over_pi";
  if (llvm::GlobalVariable* known = s_.module.getGlobalVariable(kName, /*AllowInternal=*/true)) return known;
  llvm::Constant* bits = llvm::ConstantDataArray::get(s_.ir.getContext(), kTwoOverPiBits);
  return new llvm::GlobalVariable(s_.module, bits->getType(), /*isConstant=*/true, llvm::GlobalValue::InternalLinkage,
                                  bits, kName, nullptr, llvm::GlobalValue::NotThreadLocal, kGlobal);
}

// x == m 2^e: m times the places of 2 / pi from the one that makes multiples of 4 on, modulo 4, to 190 places.
DoubleFunctions::Angle DoubleFunctions::far_quarters(Num x) {
  llvm::IRBuilder<>& ir = s_.ir;
  llvm::Type *i64 = ir.getInt64Ty(), *i128 = ir.getInt128Ty(), *f64 = ir.getDoubleTy();
  Value* bits = ir.CreateBitCast(x.abs().v, i64);
  Value* biased = ir.CreateLShr(bits, 52);
  biased = ir.CreateBinaryIntrinsic(Intrinsic::umin, biased, ir.getInt64(2046));  // infinity: anything
  biased = ir.CreateBinaryIntrinsic(Intrinsic::umax, biased, ir.getInt64(1040));
  Value* m = ir.CreateOr(ir.CreateAnd(bits, 0xfffffffffffff), ir.getInt64(uint64_t{1} << 52));
  Value* offset = ir.CreateSub(biased, ir.getInt64(1075 + 2 - 64));
  Value *word = ir.CreateLShr(offset, 6), *shift = ir.CreateAnd(offset, 63);
  Value* table[4];
  for (uint64_t i = 0; i < 4; ++i) {
    Value* at = ir.CreateBinaryIntrinsic(Intrinsic::umin, ir.CreateAdd(word, ir.getInt64(i)),
                                         ir.getInt64(kTwoOverPiBits.size() - 1));
    table[i] = ir.CreateAlignedLoad(i64, ir.CreateGEP(i64, two_over_pi(), at), llvm::Align(8));
  }
  Value* wide_m = ir.CreateZExt(m, i128);
  Value* products[3];
  for (int i = 0; i < 3; ++i) {
    Value* places = ir.CreateIntrinsic(i64, Intrinsic::fshl, {table[i], table[i + 1], shift});
    products[i] = ir.CreateMul(ir.CreateZExt(places, i128), wide_m);
  }
  auto high_of = [&](Value* v) { return ir.CreateLShr(v, 64); };
  Value* p2 = products[2];
  Value* p1 = ir.CreateAdd(products[1], high_of(p2));
  Value* p0 = ir.CreateAdd(products[0], high_of(p1));
  Value* words[3] = {ir.CreateTrunc(p0, i64), ir.CreateTrunc(p1, i64), ir.CreateTrunc(p2, i64)};
  // Two places of quarters, then the rest as a number in [-1/2, 1/2).
  Value* quarters = ir.CreateLShr(words[0], 62);
  Value* f0 = ir.CreateIntrinsic(i64, Intrinsic::fshl, {words[0], words[1], ir.getInt64(2)});
  Value* f1 = ir.CreateIntrinsic(i64, Intrinsic::fshl, {words[1], words[2], ir.getInt64(2)});
  Value* negative = ir.CreateICmpSLT(f0, ir.getInt64(0));
  quarters = ir.CreateAdd(quarters, ir.CreateZExt(negative, i64));
  Value* all = ir.CreateOr(ir.CreateShl(ir.CreateZExt(f0, i128), 64), ir.CreateZExt(f1, i128));
  all = ir.CreateSelect(negative, ir.CreateNeg(all), all);
  Value* zeros = ir.CreateIntrinsic(i64, Intrinsic::ctlz, {ir.CreateTrunc(high_of(all), i64), ir.getFalse()});
  zeros = ir.CreateBinaryIntrinsic(Intrinsic::umin, zeros, ir.getInt64(63));
  all = ir.CreateShl(all, ir.CreateZExt(zeros, i128));
  Value* first = ir.CreateTrunc(high_of(all), i64);
  Value* second = ir.CreateTrunc(all, i64);
  Value* top = ir.CreateAnd(first, ir.getInt64(~uint64_t{0x7ff}));
  Value* rest = ir.CreateOr(ir.CreateShl(ir.CreateAnd(first, 0x7ff), 53), ir.CreateLShr(second, 11));
  auto power = [&](Value* e) {
    return Num{&ir, ir.CreateBitCast(ir.CreateShl(ir.CreateAdd(e, ir.getInt64(1023)), 52), f64)};
  };
  Value* down = ir.CreateSub(ir.getInt64(-64), zeros);
  const Num high = Num{&ir, ir.CreateUIToFP(top, f64)} * power(down);
  const Num low = Num{&ir, ir.CreateUIToFP(rest, f64)} * power(ir.CreateSub(down, ir.getInt64(53)));
  Num angle = high * kHalfPi;
  Num angle_low = fma(high, high.number(kHalfPi), -angle) + (high * kHalfPiLow + low * kHalfPi);
  Value* turned = ir.CreateXor(negative, x < 0.0);
  angle = (-angle).select(turned, angle);
  angle_low = (-angle_low).select(turned, angle_low);
  quarters = ir.CreateSelect(x < 0.0, ir.CreateNeg(quarters), quarters);
  return {angle, angle_low, quarters};
}

DoubleFunctions::Angle DoubleFunctions::quarters_of(Num x) {
  llvm::IRBuilder<>& ir = s_.ir;
  const Num m = x.abs();
  const Angle near = near_quarters(x.select(m < kMostNear, 0.0));
  Value* far = ir.CreateNot(m < kMostNear);
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = ir.GetInsertBlock();
  auto* rare = llvm::BasicBlock::Create(ir.getContext(), "far", function);
  auto* after = llvm::BasicBlock::Create(ir.getContext(), "angle", function);
  ir.CreateCondBr(EmitState::is_vector(far) ? ir.CreateOrReduce(far) : far, rare, after);
  ir.SetInsertPoint(rare);
  Value *high = near.high.v, *low = near.low.v, *quarters = near.quarters;
  const unsigned lanes = EmitState::lanes_of(x.v);
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const Num one{&ir, lanes == 1 ? x.v : ir.CreateExtractElement(x.v, lane)};
    const Angle a = far_quarters(one);
    Value* is_far = lanes == 1 ? far : ir.CreateExtractElement(far, lane);
    auto put = [&](Value*& into, Value* v) {
      if (lanes == 1) return void(into = ir.CreateSelect(is_far, v, into));
      v = ir.CreateSelect(is_far, v, ir.CreateExtractElement(into, lane));
      into = ir.CreateInsertElement(into, v, lane);
    };
    put(high, a.high.v);
    put(low, a.low.v);
    put(quarters, a.quarters);
  }
  llvm::BasicBlock* rare_end = ir.GetInsertBlock();
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
  auto join = [&](Value* a, Value* b) {
    llvm::PHINode* out = ir.CreatePHI(a->getType(), 2);
    out->addIncoming(a, before);
    out->addIncoming(b, rare_end);
    return out;
  };
  return {x.make(join(near.high.v, high)), x.make(join(near.low.v, low)), join(near.quarters, quarters)};
}

Num DoubleFunctions::sine(const Angle& a, bool quarter_later) {
  llvm::IRBuilder<>& ir = s_.ir;
  const Num z = a.high * a.high, half = z * 0.5;
  const Num sine = a.high + fma(a.high * z, horner(z, kSin), a.low * (1.0 - half));
  const Num w = 1.0 - half;
  const Num cosine = w + (((1.0 - w) - half) + (z * z * horner(z, kCos) - a.high * a.low));
  Value* quarters = a.quarters;
  if (quarter_later) quarters = ir.CreateAdd(quarters, s_.constant_int_like(quarters, 1));
  auto bit = [&](int64_t which) {
    return ir.CreateICmpNE(ir.CreateAnd(quarters, s_.constant_int_like(quarters, which)),
                           s_.constant_int_like(quarters, 0));
  };
  const Num out = cosine.select(bit(1), sine);
  return (-out).select(bit(2), out);
}

Num DoubleFunctions::tan(Num x) {
  const Angle a = quarters_of(x);
  const Num s = sine(a, false), c = sine(a, true);
  return s / c;
}

// size: switch
Value* DoubleFunctions::emit(Op op, const std::vector<Value*>& operands) {
  const Num x{&s_.ir, operands[0]};
  const auto finite = [&](Num out) { return out.select(x.abs() < kInfinity, kNan); };
  switch (op) {
    case Op::Exp:
      return exp(x).v;
    case Op::Exp2:
      return exp2(x).v;
    case Op::Expm1:
      return expm1(x).v;
    case Op::Log:
      return log(x).v;
    case Op::Log2:
      return log_in_base(x, kLog2E, 1).v;
    case Op::Log10:
      return log_in_base(x, kLog10E, 0).v;
    case Op::Log1p:
      return log1p(x).v;
    case Op::Sin:
      return x.select(x.equals(0), finite(sine(quarters_of(x), false))).v;  // keeps the sign of zero
    case Op::Cos:
      return finite(sine(quarters_of(x), true)).v;
    case Op::Tan:
      return x.select(x.equals(0), finite(tan(x))).v;
    case Op::Asin:
      return asin(x).v;
    case Op::Acos:
      return acos(x).v;
    case Op::Atan:
      return atan(x).v;
    case Op::Sinh:
      return sinh(x).v;
    case Op::Cosh:
      return cosh(x).v;
    case Op::Tanh:
      return tanh(x).v;
    case Op::Asinh:
      return asinh(x).v;
    case Op::Acosh:
      return acosh(x).v;
    case Op::Atanh:
      return atanh(x).v;
    case Op::Erf:
      return erf(x).v;
    case Op::Erfc:
      return erfc(x).v;
    case Op::Lgamma:
      return lgamma(x).v;
    case Op::Pow:
      return pow(x, {&s_.ir, operands[1]}).v;
    case Op::Atan2:
      return atan2(x, {&s_.ir, operands[1]}).v;
    case Op::Hypot:
      return hypot(x, {&s_.ir, operands[1]}).v;
    default:
      CRESSET_CHECK(false, "no function of doubles");
  }
}

}  // namespace cresset::codegen::nvptx
