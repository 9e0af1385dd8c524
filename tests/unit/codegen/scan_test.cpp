// Scans: along rows and columns, of every kind, before and after reductions.
#include <gtest/gtest.h>

#include "kernel_harness.h"

namespace cresset::codegen::cpu {
namespace {

using loop::Combine;
using loop::ExprId;
using loop::Op;
using loop::ScalarId;

constexpr int64_t kSizes[] = {0, 1, 3, 16, 64, 129, 1031};

struct Line {
  KernelBuilder k;
  ExprId at;
  ScalarId x;
  loop::BufferId input, out;

  // Rows, or columns with their points `rows` elements apart.
  Line(DType dtype, int64_t rows, int64_t size, bool columns) {
    const ExprId r = k.size(rows), c = k.size(size), i = k.outer(r), j = k.inner(c);
    at = columns ? k.pool.add(k.pool.mul(j, r), i) : k.pool.add(k.pool.mul(i, c), j);
    input = k.input(dtype, rows * size);
    x = k.load(input, at);
    out = k.output(dtype, rows * size);
  }
};

TEST(CodegenScan, KindsAndDTypes) {
  for (const Combine combine : {Combine::Sum, Combine::Prod, Combine::Max, Combine::Min})
    for (DType dtype : {DType::F32, DType::BF16, DType::F64, DType::I32, DType::I64})
      for (const bool columns : {false, true}) {
        Line line(dtype, 5, 70, columns);
        line.k.store(line.out, line.at, line.k.b.scan(combine, line.x));
        // Products grow beyond what errors of sums allow.
        expect_same(line.k,
                    {.ulps = combine == Combine::Prod ? 64.0 : 8.0, .absolute = dtype == DType::BF16 ? 0.1 : 1e-4});
      }
}

TEST(CodegenScan, Sizes) {
  for (const int64_t size : kSizes)
    for (const int64_t rows : {1, 9, 40})
      for (const bool columns : {false, true}) {
        Line line(DType::F32, rows, size, columns);
        line.k.store(line.out, line.at, line.k.b.scan(Combine::Sum, line.x));
        expect_same(line.k, {.ulps = 8, .absolute = 1e-3});  // a column adds in order
      }
}

// A scan of shares, as in sampling: softmax, then its running sum.
TEST(CodegenScan, AfterReductions) {
  for (const int64_t size : {3, 64, 300}) {
    Line line(DType::F32, 6, size, false);
    KernelBuilder& k = line.k;
    const ScalarId e = k.b.unary(Op::Exp, k.b.binary(Op::Sub, line.x, k.b.reduce(Combine::Max, line.x)));
    k.store(line.out, line.at, k.b.scan(Combine::Sum, k.b.binary(Op::Div, e, k.b.reduce(Combine::Sum, e))));
    expect_same(k, {.ulps = 16, .absolute = 1e-5});
  }
}

TEST(CodegenScan, BeforeReductionsAndScansOfScans) {
  for (const bool columns : {false, true}) {
    Line line(DType::I64, 7, 70, columns);
    KernelBuilder& k = line.k;
    const ScalarId once = k.b.scan(Combine::Sum, line.x), twice = k.b.scan(Combine::Max, once);
    const ScalarId most = k.b.reduce(Combine::Max, once);
    k.store(line.out, line.at, k.b.binary(Op::Sub, twice, most));
    expect_same(k);
  }
}

// The operand is the same at all points.
TEST(CodegenScan, CountsPoints) {
  Line line(DType::I64, 4, 70, false);
  line.k.store(line.out, line.at, line.k.b.scan(Combine::Sum, line.k.b.constant_int(DType::I64, 1)));
  expect_same(line.k);
}

TEST(CodegenScan, OfInPlaceRows) {
  Line line(DType::F32, 6, 130, false);
  KernelBuilder& k = line.k;
  k.kernel.buffers[line.input.index].written = true;
  k.store(line.input, line.at, k.b.scan(Combine::Sum, line.x));
  expect_same(k, {.ulps = 8, .absolute = 1e-4});
}

}  // namespace
}  // namespace cresset::codegen::cpu
