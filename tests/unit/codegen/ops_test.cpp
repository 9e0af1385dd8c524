// Every scalar operator on every dtype it has: compiled equals interpreted.
#include <gtest/gtest.h>

#include <cmath>

#include "kernel_harness.h"

namespace cresset::codegen::cpu {
namespace {

using loop::ExprId;
using loop::Op;
using loop::ScalarId;

constexpr int64_t kCount = 203;  // several vectors and a tail

struct Case {
  Op op;
  DType dtype;
  double ulps;
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return std::string(loop::to_string(info.param.op)) + "_" + std::string(to_string(info.param.dtype));
}

bool is_library(Op op) {
  return (op >= Op::Exp && op <= Op::Lgamma && op != Op::Sqrt && op != Op::Rsqrt) || op == Op::Pow || op == Op::Atan2 ||
         op == Op::Hypot;
}

std::vector<Case> float_cases() {
  std::vector<Case> out;
  for (DType dtype : {DType::F32, DType::F64}) {
    for (int i = 0; i <= static_cast<int>(Op::IsInf); ++i) {
      const Op op = static_cast<Op>(i);
      const bool integer_only =
          op == Op::FloorDivInt || op == Op::TruncDivInt || (op >= Op::BitAnd && op <= Op::ShiftRight);
      const bool other = arity(op) == 0 || op == Op::Cast || op == Op::BitCast || op == Op::RoundTo || op == Op::Select;
      if (!integer_only && !other) out.push_back({op, dtype, is_library(op) ? 2.0 : 0.0});
    }
  }
  return out;
}

std::vector<Case> integer_cases() {
  std::vector<Case> out;
  for (DType dtype : {DType::U8, DType::I8, DType::I16, DType::I32, DType::I64}) {
    for (Op op : {Op::Add,     Op::Sub,     Op::Mul,       Op::FloorDivInt, Op::TruncDivInt, Op::Fmod,   Op::Remainder,
                  Op::Maximum, Op::Minimum, Op::Fmax,      Op::Fmin,        Op::Fma,         Op::BitAnd, Op::BitOr,
                  Op::BitXor,  Op::BitNot,  Op::ShiftLeft, Op::ShiftRight,  Op::Eq,          Op::Ne,     Op::Lt,
                  Op::Le,      Op::Gt,      Op::Ge,        Op::Neg,         Op::Abs,         Op::Sign})
      out.push_back({op, dtype, 0});
  }
  for (Op op : {Op::BitAnd, Op::BitOr, Op::BitXor, Op::BitNot, Op::Eq, Op::Ne, Op::Lt, Op::Maximum, Op::Minimum})
    out.push_back({op, DType::Bool, 0});
  return out;
}

// out[i] = op(x[i], y[i], z[i]), straight through Kernel::add so that nothing is simplified away.
void run_case(Op op, DType dtype, DType result, Tolerance tolerance, loop::Scalar extra = {}) {
  KernelBuilder k;
  const ExprId i = k.outer(k.size(kCount));
  loop::Scalar s = extra;
  s.op = op;
  s.dtype = result;
  ScalarId* operands[] = {&s.a, &s.b, &s.c};
  for (int n = 0; n < arity(op); ++n) {
    const DType from = op == Op::Select && n == 0 ? DType::Bool : dtype;
    *operands[n] = k.load(k.input(from, kCount), i);
  }
  k.store(k.output(result, kCount), i, k.kernel.add(s));
  fill(k, 7, /*specials=*/true);
  expect_same(k, tolerance);
}

class CodegenOps : public testing::TestWithParam<Case> {};

TEST_P(CodegenOps, SameAsInterpreted) {
  const auto [op, dtype, ulps] = GetParam();
  const bool predicate = (op >= Op::Eq && op <= Op::Ge) || op == Op::IsNan || op == Op::IsInf;
  run_case(op, dtype, predicate ? DType::Bool : dtype, {.ulps = ulps});
}

INSTANTIATE_TEST_SUITE_P(Float, CodegenOps, testing::ValuesIn(float_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Integer, CodegenOps, testing::ValuesIn(integer_cases()), name_of);

// Exact for quotients of any size, for those that round up to an integer, and where the divisor or quotient is special.
TEST(CodegenRemainders, ExactForAllQuotients) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (DType dtype : {DType::F32, DType::F64}) {
    std::vector<double> x, y;
    std::mt19937_64 random(3);
    for (int i = 0; i < 3000; ++i) {
      const double a =
          std::ldexp(1 + static_cast<double>(random() % 1000003) / 1000003, static_cast<int>(random() % 61) - 20);
      const double b =
          std::ldexp(1 + static_cast<double>(random() % 1000003) / 1000003, static_cast<int>(random() % 41) - 20);
      x.push_back(random() % 2 != 0 ? a : -a);
      y.push_back(random() % 2 != 0 ? b : -b);
      if (i % 3 == 0)
        x.back() = std::nextafter(y.back() * static_cast<double>(random() % 100000), i % 2 == 0 ? inf : 0);
    }
    const double specials[] = {0.0, -0.0, 1, -1, 1e-45, -1e-310, 3e38, 1e-30, inf, -inf, nan, 37};
    for (const double a : specials)
      for (const double b : specials) x.push_back(a), y.push_back(b);
    const auto n = static_cast<int64_t>(x.size());
    KernelBuilder k;
    const ExprId i = k.outer(k.size(n));
    const auto xs = k.input(dtype, n), ys = k.input(dtype, n);
    if (dtype == DType::F64) {
      set_data(k, xs, x);
      set_data(k, ys, y);
    } else {
      set_data(k, xs, std::vector<float>(x.begin(), x.end()));
      set_data(k, ys, std::vector<float>(y.begin(), y.end()));
    }
    for (Op op : {Op::Fmod, Op::Remainder})
      k.store(k.output(dtype, n), i, k.b.binary(op, k.load(xs, i), k.load(ys, i)));
    expect_same(k);
  }
}

TEST(CodegenConversions, CastBetweenAllDtypes) {
  const DType dtypes[] = {DType::Bool, DType::U8,  DType::I8,  DType::I16,
                          DType::I32,  DType::I64, DType::F32, DType::F64};
  for (DType from : dtypes)
    for (DType to : dtypes) {
      SCOPED_TRACE(std::string(to_string(from)) + " to " + std::string(to_string(to)));
      // float to integer out of range is left open: only in-range values are compared
      KernelBuilder k;
      const ExprId i = k.outer(k.size(kCount));
      const ScalarId x = k.load(k.input(from, kCount), i);
      k.store(k.output(to, kCount), i, k.kernel.add({.op = Op::Cast, .dtype = to, .a = x}));
      const bool narrowing = is_float(from) && !is_float(to) && to != DType::Bool;
      fill(k, 3, /*specials=*/!narrowing);
      expect_same(k);
    }
}

TEST(CodegenConversions, BitCast) {
  run_case(Op::BitCast, DType::F32, DType::I32, {});
  run_case(Op::BitCast, DType::I32, DType::F32, {});
  run_case(Op::BitCast, DType::F64, DType::I64, {});
  run_case(Op::BitCast, DType::U8, DType::I8, {});
}

TEST(CodegenConversions, RoundToHalf) {
  run_case(Op::RoundTo, DType::F32, DType::F32, {}, {.round = DType::BF16});
  run_case(Op::RoundTo, DType::F32, DType::F32, {}, {.round = DType::F16});
}

TEST(CodegenConversions, SelectEveryDtype) {
  for (DType dtype : {DType::Bool, DType::U8, DType::I16, DType::I32, DType::I64, DType::F32, DType::F64})
    run_case(Op::Select, dtype, dtype, {});
}

TEST(CodegenConversions, HalfStorageInAndOut) {
  for (DType storage : {DType::BF16, DType::F16}) {
    KernelBuilder k;
    const ExprId i = k.outer(k.size(kCount));
    const ScalarId x = k.load(k.input(storage, kCount), i), y = k.load(k.input(storage, kCount), i);
    k.store(k.output(storage, kCount), i, k.b.binary(Op::Add, x, y));
    k.store(k.output(DType::F32, kCount), i, k.b.binary(Op::Mul, x, y));
    fill(k, 5, /*specials=*/true);
    expect_same(k);
  }
}

}  // namespace
}  // namespace cresset::codegen::cpu
