#include <gtest/gtest.h>

#include "codegen/cpu/schedule.h"
#include "kernel_harness.h"

namespace cresset::codegen::cpu {
namespace {

using loop::Combine;
using loop::ExprId;
using loop::Op;
using loop::ScalarId;

constexpr int64_t kSizes[] = {0, 1, 7, 16, 17, 64, 100, 1031};

TEST(CodegenBasic, AddOfContiguousVectors) {
  for (int64_t n : kSizes) {
    KernelBuilder k;
    const ExprId i = k.outer(k.size(n));
    const auto x = k.input(DType::F32, n), y = k.input(DType::F32, n), out = k.output(DType::F32, n);
    k.store(out, i, k.b.binary(Op::Add, k.load(x, i), k.load(y, i)));
    expect_same(k);
  }
}

TEST(CodegenBasic, ManyBlocks) {
  KernelBuilder k;
  const ExprId i = k.outer(k.size(70001));
  const auto x = k.input(DType::F32, 70001), out = k.output(DType::F32, 70001);
  k.store(out, i, k.b.binary(Op::Mul, k.load(x, i), k.b.constant(DType::F32, 3)));
  expect_same(k);
}

TEST(CodegenBasic, BroadcastBiasOverRows) {
  for (int64_t n : kSizes) {
    KernelBuilder k;
    const ExprId rows = k.size(5), cols = k.size(n);
    const ExprId i = k.outer(rows), j = k.outer(cols);
    const auto x = k.input(DType::F32, 5 * n), bias = k.input(DType::F32, n), scale = k.input(DType::F32, 5),
               out = k.output(DType::F32, 5 * n);
    const ExprId at = k.pool.add(k.pool.mul(i, cols), j);
    k.store(out, at, k.b.binary(Op::Mul, k.b.binary(Op::Add, k.load(x, at), k.load(bias, j)), k.load(scale, i)));
    expect_same(k);
  }
}

TEST(CodegenBasic, TransposedCopy) {
  KernelBuilder k;
  const ExprId rows = k.size(37), cols = k.size(45);
  const ExprId i = k.outer(rows), j = k.outer(cols);
  const auto x = k.input(DType::F32, 37 * 45), out = k.output(DType::F32, 37 * 45);
  k.store(out, k.pool.add(k.pool.mul(i, cols), j), k.load(x, k.pool.add(k.pool.mul(j, rows), i)));
  expect_same(k);
}

TEST(CodegenBasic, ScalarKernel) {
  KernelBuilder k;
  const auto x = k.input(DType::F32, 1), out = k.output(DType::F32, 1);
  k.store(out, k.pool.constant(0), k.b.unary(Op::Neg, k.load(x, k.pool.constant(0))));
  expect_same(k);
}

// As a kernel of a GPU gets numbers that lie on the host.
TEST(CodegenBasic, ElementsByValue) {
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::U8, DType::Bool}) {
    KernelBuilder k;
    const ExprId n = k.size(77), i = k.outer(n);
    const auto x = k.input(DType::F32, 77), number = k.input(dtype, 1), out = k.output(DType::F32, 77);
    k.kernel.buffers[number.index].by_value = true;
    const auto scale = k.b.cast(k.load(number, k.pool.constant(0)), DType::F32);
    k.store(out, i, k.b.binary(Op::Mul, k.load(x, i), scale));
    expect_same(k);
  }
}

TEST(CodegenReduce, SumOverInner) {
  for (int64_t n : kSizes) {
    KernelBuilder k;
    const ExprId rows = k.size(3), cols = k.size(n);
    const ExprId i = k.outer(rows), j = k.inner(cols);
    const auto x = k.input(DType::F32, 3 * n), out = k.output(DType::F32, 3);
    k.store(out, i, k.b.reduce(Combine::Sum, k.load(x, k.pool.add(k.pool.mul(i, cols), j))));
    expect_same(k, {.ulps = 2, .absolute = 1e-4});
  }
}

// A program serves all sizes: what the first call had decides nothing about its loops.
TEST(CodegenReduce, SchedulesOfRowsDoNotDependOnHints) {
  std::vector<std::string> texts;
  for (int64_t n : {2, 4, 9, 100, 5000}) {
    KernelBuilder k;
    const ExprId rows = k.size(n % 7 + 1), cols = k.size(n);
    const ExprId i = k.outer(rows), j = k.inner(cols);
    const auto x = k.input(DType::F32, (n % 7 + 1) * n), out = k.output(DType::F32, n % 7 + 1);
    k.store(out, i, k.b.reduce(Combine::Sum, k.load(x, k.pool.add(k.pool.mul(i, cols), j))));
    const Schedule schedule = make_schedule(k.kernel, 512);
    EXPECT_TRUE(schedule.vector_is_inner());
    texts.push_back(schedule_text(k.kernel, schedule));
    EXPECT_EQ(texts.back(), texts.front());
  }
}

// x in columns, y in rows: lanes along the rows would gather x, along the columns they share y.
TEST(CodegenReduce, LanesRunWhereNothingIsGathered) {
  for (int64_t n : kSizes) {
    KernelBuilder k;
    const ExprId columns = k.size(9), length = k.size(n);
    const ExprId i = k.outer(columns), j = k.inner(length);
    const auto x = k.input(DType::F32, 9 * n), y = k.input(DType::F32, n), out = k.output(DType::F32, 9);
    const ScalarId sum = k.b.binary(Op::Add, k.load(x, k.pool.add(k.pool.mul(j, columns), i)), k.load(y, j));
    k.store(out, i, k.b.reduce(Combine::Sum, sum));
    EXPECT_FALSE(make_schedule(k.kernel, 512).vector_is_inner());
    expect_same(k, {.ulps = 2, .absolute = 1e-4});
  }
}

// Two outer loops around rows that fit into a vector or not; lengths are symbols or numbers.
TEST(CodegenReduce, RowsOfAnyLength) {
  for (const bool known : {false, true}) {
    for (int64_t n : {0, 1, 2, 7, 16, 17, 64, 70}) {
      KernelBuilder k;
      const ExprId planes = k.size(3), rows = k.size(5), cols = known ? k.pool.constant(n) : k.size(n);
      const ExprId p = k.outer(planes), i = k.outer(rows), j = k.inner(cols), step = k.size(2 * n + 3);
      const auto x = k.input(DType::F32, 15 * (2 * n + 3)), out = k.output(DType::F32, 15),
                 all = k.output(DType::F32, 15 * n);
      const ExprId row = k.pool.add(k.pool.mul(p, rows), i);
      const ScalarId value = k.load(x, k.pool.add(k.pool.mul(k.pool.add(k.pool.mul(i, planes), p), step), j));
      const ScalarId sum = k.b.reduce(Combine::Sum, value);
      k.store(out, row, sum);
      k.store(all, k.pool.add(k.pool.mul(row, cols), j), k.b.binary(Op::Sub, value, sum));
      expect_same(k, {.ulps = 2, .absolute = 1e-4});
    }
  }
}

TEST(CodegenBasic, ShortRowsInAnyOrder) {
  for (const bool known : {false, true}) {
    for (int64_t n : {1, 3, 4, 8, 16, 19}) {
      KernelBuilder k;
      const ExprId planes = k.size(3), rows = k.size(25), cols = known ? k.pool.constant(n) : k.size(n);
      const ExprId p = k.outer(planes), i = k.outer(rows), j = k.outer(cols);
      const auto x = k.input(DType::F32, 75 * n), y = k.input(DType::F32, 75 * n);
      const ExprId here = k.pool.add(k.pool.mul(k.pool.add(k.pool.mul(p, rows), i), cols), j);
      const ExprId swapped = k.pool.add(k.pool.mul(k.pool.add(k.pool.mul(i, planes), p), cols), j);
      const ExprId turned = k.pool.add(k.pool.mul(k.pool.add(k.pool.mul(p, cols), j), rows), i);
      k.store(k.output(DType::F32, 75 * n), here, k.load(x, swapped));
      k.store(k.output(DType::F32, 75 * n), here, k.b.binary(Op::Add, k.load(x, here), k.load(y, turned)));
      expect_same(k);
    }
  }
}

TEST(CodegenReduce, SumOverOuter) {
  for (int64_t n : kSizes) {
    KernelBuilder k;
    const ExprId rows = k.size(300), cols = k.size(n);
    const ExprId j = k.outer(cols), i = k.inner(rows);
    const auto x = k.input(DType::F32, 300 * n), out = k.output(DType::F32, n);
    k.store(out, j, k.b.reduce(Combine::Sum, k.load(x, k.pool.add(k.pool.mul(i, cols), j))));
    expect_same(k, {.ulps = 2, .absolute = 1e-4});
  }
}

void softmax(bool contiguous, int64_t rows_value, int64_t cols_value) {
  KernelBuilder k;
  const ExprId rows = k.size(rows_value), cols = k.size(cols_value);
  const ExprId i = k.outer(rows), j = k.inner(cols);
  const int64_t n = rows_value * cols_value;
  const auto x = k.input(DType::F32, n), out = k.output(DType::F32, n);
  const ExprId at = contiguous ? k.pool.add(k.pool.mul(i, cols), j) : k.pool.add(k.pool.mul(j, rows), i);
  const ScalarId v = k.load(x, at);
  const ScalarId e = k.b.unary(Op::Exp, k.b.binary(Op::Sub, v, k.b.reduce(Combine::Max, v)));
  k.store(out, at, k.b.binary(Op::Div, e, k.b.reduce(Combine::Sum, e)));
  expect_same(k, {.ulps = 16});
}

TEST(CodegenReduce, Softmax) {
  for (int64_t n : kSizes) softmax(true, 3, n);
  for (int64_t n : kSizes) softmax(false, n, 11);
}

}  // namespace
}  // namespace cresset::codegen::cpu
