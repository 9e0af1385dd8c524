// The inline functions over the whole range of floats: units in the last place, specials, signs of zeros.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kernel_harness.h"

namespace cresset::codegen::cpu {
namespace {

using loop::Op;

// Every 9973rd float of all signs and exponents (a prime, so that no bit is left out), and the specials.
std::vector<float> sampled_floats() {
  std::vector<float> out = {
      0.0f,      -0.0f,     INFINITY,   -INFINITY,   NAN,        std::numeric_limits<float>::denorm_min(),
      88.72283f, 88.72284f, -87.33655f, -103.97208f, -103.9721f, -104.1f,
      0.625f,    0.96f,     3.95f,      10.0f};
  out.resize(64, 0.0f);
  for (int i = 0; i < 64; ++i) out.push_back(i % 2 == 0 ? -0.0f : 0.0f);  // vectors of their own
  for (uint64_t bits = 0; bits < (1ull << 32); bits += 9973)
    out.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (int i = 0; i < 200000; ++i)  // about multiples of a quarter turn
    out.push_back(std::nextafterf(static_cast<float>(i % 70000) * 1.5707963267948966f, i < 100000 ? 0.0f : 1e9f));
  for (int i = 0; i < 100000; ++i) out.push_back(static_cast<float>(i) * 0.002f - 100.0f);  // where nothing is flat
  return out;
}

double ulps(float got, double expected) {
  if (std::isnan(expected)) return std::isnan(got) ? 0 : 1e9;
  const float rounded = static_cast<float>(expected);
  if (std::isinf(rounded) || rounded == 0)
    return got == rounded ? 0 : std::isinf(rounded) ? 1e9 : std::fabs(got) / 0x1p-149;
  const double unit = static_cast<double>(std::nextafterf(std::fabs(rounded), INFINITY)) - std::fabs(rounded);
  return std::fabs(static_cast<double>(got) - expected) / unit;
}

void expect_within(Op op, double (*reference)(double), double limit) {
  const std::vector<float> x = sampled_floats();
  const int64_t n = static_cast<int64_t>(x.size());
  KernelBuilder k;
  const loop::ExprId i = k.outer(k.size(n));
  const auto in = k.input(DType::F32, n), out = k.output(DType::F32, n);
  k.store(out, i, k.b.unary(op, k.load(in, i)));
  set_data(k, in, x);
  run_kernel(k, [&](const Memory& got, const std::string& name) {
    const float* y = reinterpret_cast<const float*>(got.bytes[out.index].data());
    double worst = 0;
    size_t where = 0;
    for (size_t e = 0; e < x.size(); ++e) {
      const double error = ulps(y[e], reference(static_cast<double>(x[e])));
      if (error > worst) worst = error, where = e;
      if (x[e] == 0) {
        ASSERT_EQ(std::signbit(y[e]), std::signbit(reference(static_cast<double>(x[e])))) << name << " " << e;
      }
    }
    EXPECT_LE(worst, limit) << loop::to_string(op) << "(" << x[where] << ") = " << y[where] << ", " << name;
  });
}

TEST(CodegenApprox, Exp) { expect_within(Op::Exp, std::exp, 1.05); }
TEST(CodegenApprox, Expm1) { expect_within(Op::Expm1, std::expm1, 1.6); }
TEST(CodegenApprox, Tanh) { expect_within(Op::Tanh, std::tanh, 1.6); }
TEST(CodegenApprox, Sin) { expect_within(Op::Sin, std::sin, 1.6); }
TEST(CodegenApprox, Cos) { expect_within(Op::Cos, std::cos, 1.6); }
TEST(CodegenApprox, Erf) { expect_within(Op::Erf, std::erf, 1.6); }

}  // namespace
}  // namespace cresset::codegen::cpu
