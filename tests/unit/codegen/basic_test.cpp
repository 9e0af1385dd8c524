#include <gtest/gtest.h>

#include "kernel_harness.h"

namespace cresset::codegen {
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
}  // namespace cresset::codegen
