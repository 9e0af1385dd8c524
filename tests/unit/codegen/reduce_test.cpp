// Reductions: every combine and dtype, over contiguous, strided and several dimensions, in one pass and in several.
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/cpu/schedule.h"
#include "kernel_harness.h"

namespace cresset::codegen::cpu {
namespace {

using loop::Combine;
using loop::ExprId;
using loop::Op;
using loop::ScalarId;

constexpr int64_t kSizes[] = {0, 1, 7, 16, 17, 130, 1031};

struct Case {
  Combine combine;
  DType dtype;
};
std::string name_of(const testing::TestParamInfo<Case>& info) {
  return std::string(loop::to_string(info.param.combine)) + "_" + std::string(to_string(info.param.dtype));
}
std::vector<Case> cases() {
  std::vector<Case> out;
  const DType dtypes[] = {DType::Bool, DType::U8,  DType::I8,  DType::I16,
                          DType::I32,  DType::I64, DType::F32, DType::F64};
  for (Combine combine : {Combine::Sum, Combine::Prod, Combine::Max, Combine::Min, Combine::ArgMax, Combine::ArgMin})
    for (DType dtype : dtypes)
      if (dtype != DType::Bool || (combine != Combine::Sum && combine != Combine::Prod))
        out.push_back({combine, dtype});
  out.push_back({Combine::Any, DType::Bool});
  out.push_back({Combine::All, DType::Bool});
  return out;
}

void reduce(Combine combine, DType dtype, bool inner_contiguous, int64_t n) {
  KernelBuilder k;
  const int64_t m = 19;
  const ExprId rows = k.size(m), cols = k.size(n);
  const ExprId i = k.outer(rows), j = k.inner(cols);
  const ExprId at = inner_contiguous ? k.pool.add(k.pool.mul(i, cols), j) : k.pool.add(k.pool.mul(j, rows), i);
  const ScalarId x = k.load(k.input(dtype, m * n), at);
  const ScalarId r = k.b.reduce(combine, x);
  k.store(k.output(k.b.dtype(r), m), i, r);
  const bool sums = combine == Combine::Sum || combine == Combine::Prod;
  fill(k, 11, /*specials=*/!sums);
  const double slack = dtype == DType::F64 ? 1e-12 : 1e-4;
  expect_same(k, sums ? Tolerance{.ulps = 400, .absolute = slack} : Tolerance{});
}

class CodegenCombine : public testing::TestWithParam<Case> {};
TEST_P(CodegenCombine, InnerContiguous) {
  for (int64_t n : kSizes) reduce(GetParam().combine, GetParam().dtype, true, n);
}
TEST_P(CodegenCombine, OuterContiguous) {
  for (int64_t n : kSizes) reduce(GetParam().combine, GetParam().dtype, false, n);
}
INSTANTIATE_TEST_SUITE_P(All, CodegenCombine, testing::ValuesIn(cases()), name_of);

TEST(CodegenReduceMany, ArgMaxTiesGoToTheFirst) {
  for (int64_t n : {5, 16, 64, 100, 777}) {
    KernelBuilder k;
    const ExprId j = k.inner(k.size(n));
    const auto x = k.input(DType::F32, n);
    std::vector<float> values(static_cast<size_t>(n), -INFINITY);
    for (int64_t p = n / 3; p < n; p += 7) values[static_cast<size_t>(p)] = 2;
    set_data(k, x, values);
    const ScalarId v = k.load(x, j);
    k.store(k.output(DType::I64, 1), k.pool.constant(0), k.b.reduce(Combine::ArgMax, v));
    k.store(k.output(DType::I64, 1), k.pool.constant(0), k.b.reduce(Combine::ArgMin, v));
    expect_same(k);
  }
}

// What rows gather is kept for their next passes; what lies side by side is read again.
TEST(CodegenReduceMany, GatheredRowsAreKept) {
  for (const bool gathered : {false, true}) {
    KernelBuilder k;
    const int64_t rows = 5, three = 3, n = 24;
    const ExprId i = k.outer(k.size(rows)), j = k.inner(k.size(n)), c = k.size(three);
    const ExprId turned = k.pool.add(k.pool.mul(k.pool.mod(j, c), k.size(100)), k.pool.floor_div(j, c));
    const ExprId row = k.pool.mul(i, k.pool.constant(n));
    const ScalarId x = k.load(k.input(DType::F32, 1000), k.pool.add(row, gathered ? turned : j));
    const ScalarId rest = k.b.binary(Op::Sub, x, k.b.reduce(Combine::Sum, x));
    k.store(k.output(DType::F32, rows * n), k.pool.add(row, j), rest);
    EXPECT_EQ(make_schedule(k.kernel, 512).spilled.size(), gathered ? 1u : 0u);
    fill(k, 3, /*specials=*/false);
    expect_same(k, Tolerance{.ulps = 400, .absolute = 1e-4});
  }
}

// Inner dims that cannot be merged, in an order that is not that of memory.
TEST(CodegenReduceMany, SeveralInnerDims) {
  for (Combine combine : {Combine::Sum, Combine::Max, Combine::ArgMax}) {
    KernelBuilder k;
    const ExprId a = k.size(3), b = k.size(5), c = k.size(23), d = k.size(6);
    const ExprId i = k.outer(a), p = k.inner(b), q = k.inner(c), r = k.inner(d);
    // memory order: i, r, p, q
    ExprId at = k.pool.add(k.pool.mul(i, d), r);
    at = k.pool.add(k.pool.mul(at, b), p);
    at = k.pool.add(k.pool.mul(at, c), q);
    const ScalarId x = k.load(k.input(DType::F32, 3 * 5 * 23 * 6), at);
    const ScalarId result = k.b.reduce(combine, x);
    k.store(k.output(k.b.dtype(result), 3), i, result);
    expect_same(k, {.ulps = 4, .absolute = 1e-4});
  }
}

void layer_norm(DType storage, int64_t rows_value, int64_t cols_value) {
  KernelBuilder k;
  const ExprId rows = k.size(rows_value), cols = k.size(cols_value);
  const ExprId i = k.outer(rows), j = k.inner(cols);
  const int64_t n = rows_value * cols_value;
  const auto x = k.input(storage, n), weight = k.input(storage, cols_value), bias = k.input(storage, cols_value),
             out = k.output(storage, n), mean_out = k.output(DType::F32, rows_value);
  const ExprId at = k.pool.add(k.pool.mul(i, cols), j);
  const ScalarId v = k.load(x, at), count = k.b.cast(k.b.size(cols), DType::F32);
  const ScalarId mean = k.b.binary(Op::Div, k.b.reduce(Combine::Sum, v), count);
  const ScalarId centered = k.b.binary(Op::Sub, v, mean);
  const ScalarId variance =
      k.b.binary(Op::Div, k.b.reduce(Combine::Sum, k.b.binary(Op::Mul, centered, centered)), count);
  const ScalarId rstd = k.b.unary(Op::Rsqrt, k.b.binary(Op::Add, variance, k.b.constant(DType::F32, 1e-5)));
  const ScalarId y = k.b.binary(Op::Mul, k.b.binary(Op::Mul, centered, rstd), k.load(weight, j));
  k.store(out, at, k.b.binary(Op::Add, y, k.load(bias, j)));
  k.store(mean_out, i, mean);
  expect_same(k, {.ulps = storage == DType::F32 ? 32.0 : 1.0, .absolute = 2e-6});
}

TEST(CodegenReduceMany, LayerNorm) {
  for (int64_t n : kSizes) layer_norm(DType::F32, 3, n);
  layer_norm(DType::BF16, 4, 100);
  layer_norm(DType::F16, 2, 65);
}

// A tanh that two passes need goes through scratch; with the vector loop inside and outside.
// Constant extents lose their tails, their loops, or both.
// Rows that all read the same: one vector of them for each element.
TEST(CodegenReduceMany, RowsThatShareWhatTheyRead) {
  for (const auto& [rows, shares] : {std::pair(64, true), std::pair(3, false)}) {
    for (int64_t n : kSizes) {
      KernelBuilder k;
      const int64_t m = 5;
      const ExprId batch = k.size(m), count = k.pool.constant(rows), cols = k.size(n);
      const ExprId b = k.outer(batch), i = k.outer(count), j = k.inner(cols);
      const ScalarId x = k.load(k.input(DType::I64, m * n), k.pool.add(k.pool.mul(b, cols), j));
      const ScalarId same = k.b.binary(Op::Eq, x, k.b.size(i));
      k.store(k.output(DType::I64, m * rows), k.pool.add(k.pool.mul(b, count), i),
              k.b.reduce(Combine::Sum, k.b.cast(same, DType::I64)));
      fill(k, 12, /*specials=*/false);
      expect_same(k, {});
      EXPECT_NE(make_schedule(k.kernel, 512).vector_is_inner(), shares);
    }
  }
}

TEST(CodegenReduceMany, ConstantExtents) {
  for (int64_t n : {1, 3, 16, 40, 64, 80, 96, 768, 5000}) {
    for (bool contiguous : {true, false}) {
      KernelBuilder k;
      const ExprId rows = k.size(3), cols = k.pool.constant(n);
      const ExprId i = k.outer(rows), j = k.inner(cols);
      const ExprId at = contiguous ? k.pool.add(k.pool.mul(i, cols), j) : k.pool.add(k.pool.mul(j, rows), i);
      const ScalarId x = k.load(k.input(DType::F32, 3 * n), at);
      const ScalarId most = k.b.reduce(Combine::Max, x);
      const ScalarId total = k.b.reduce(Combine::Sum, k.b.binary(Op::Sub, x, most));
      k.store(k.output(DType::I64, 3), i, k.b.reduce(Combine::ArgMin, x));
      k.store(k.output(DType::F32, 3 * n), at, k.b.binary(Op::Add, x, total));
      expect_same(k, {.ulps = 8, .absolute = 1e-4});
    }
  }
}

TEST(CodegenReduceMany, SpilledValues) {
  for (bool contiguous : {true, false}) {
    KernelBuilder k;
    const ExprId rows = k.size(21), cols = k.size(37), planes = k.size(4);
    const ExprId i = k.outer(rows), h = k.inner(planes), j = k.inner(cols);
    const ExprId spot = k.pool.add(k.pool.mul(h, k.pool.add(cols, k.pool.constant(3))), j);  // rows of 40: no merging
    const ExprId at =
        contiguous ? k.pool.add(k.pool.mul(i, k.pool.constant(160)), spot) : k.pool.add(k.pool.mul(spot, rows), i);
    const auto x = k.input(DType::F32, 160 * 21), out = k.output(DType::F32, 160 * 21);
    k.data[out.index].assign(160 * 21 * 4, 0);
    const ScalarId t = k.b.unary(Op::Tanh, k.load(x, at));
    const ScalarId u = k.b.unary(Op::Exp, k.b.binary(Op::Sub, t, k.b.reduce(Combine::Max, t)));
    k.store(out, at, k.b.binary(Op::Div, k.b.binary(Op::Add, u, t), k.b.reduce(Combine::Sum, u)));
    expect_same(k, {.ulps = 16, .absolute = 1e-6});
  }
}

TEST(CodegenReduceMany, ReductionWithoutInnerDims) {
  KernelBuilder k;
  const ExprId i = k.outer(k.size(40)), j = k.inner(k.pool.constant(1));
  const ScalarId x = k.load(k.input(DType::F32, 40), k.pool.add(i, j));
  k.store(k.output(DType::F32, 40), i, k.b.reduce(Combine::Sum, x));
  k.store(k.output(DType::I64, 40), i, k.b.reduce(Combine::ArgMax, x));
  expect_same(k);
}

// Softmax of rows with infinities and NaN, of which maxima and sums may be computed together.
TEST(CodegenReduceMany, SoftmaxOfSpecialRows) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (const bool columns : {false, true}) {
    for (const int64_t width : {1, 7, 64, 300}) {
      const std::vector<std::vector<float>> specials = {
          {}, {-inf, -inf}, {inf}, {nan}, {inf, -inf}, {nan, inf}, {-inf, nan}, {1e30f, -1e30f}, {-100, 100.f}};
      const auto rows = static_cast<int64_t>(specials.size() + 1);
      KernelBuilder k;
      const ExprId r = k.size(rows), c = k.size(width), i = k.outer(r), j = k.inner(c);
      const ExprId at = columns ? k.pool.add(k.pool.mul(j, r), i) : k.pool.add(k.pool.mul(i, c), j);
      const auto x = k.input(DType::F32, rows * width);
      std::vector<float> values(static_cast<size_t>(rows * width));
      const auto element = [&](int64_t row, int64_t col) -> float& {
        return values[static_cast<size_t>(columns ? col * rows + row : row * width + col)];
      };
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t col = 0; col < width; ++col) {
          element(row, col) = row + 1 == rows ? -inf : static_cast<float>((row * 31 + col * 17) % 23) - 11;
          if (row + 1 == rows) continue;
          const std::vector<float>& special = specials[static_cast<size_t>(row)];
          const auto from_end = static_cast<size_t>(width - 1 - col);
          if (from_end < special.size()) element(row, col) = special[from_end];
        }
      set_data(k, x, values);
      const ScalarId v = k.load(x, at), most = k.b.reduce(Combine::Max, v);
      const ScalarId e = k.b.unary(Op::Exp, k.b.binary(Op::Sub, v, most)), sum = k.b.reduce(Combine::Sum, e);
      k.store(k.output(DType::F32, rows * width), at, k.b.binary(Op::Div, e, sum));
      k.store(k.output(DType::F32, rows), i, sum);
      expect_same(k, {.ulps = 32, .absolute = 1e-6});
    }
  }
}

TEST(CodegenReduceMany, LongSumIsAccurate) {
  const int64_t n = 3'000'000;
  KernelBuilder k;
  const ExprId j = k.inner(k.size(n));
  const auto x = k.input(DType::F32, n);
  set_data(k, x, std::vector<float>(static_cast<size_t>(n), 0.1f));
  k.store(k.output(DType::F32, 1), k.pool.constant(0), k.b.reduce(Combine::Sum, k.load(x, j)));
  expect_same(k, {.ulps = 16});
}

}  // namespace
}  // namespace cresset::codegen::cpu
