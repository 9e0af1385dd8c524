// Access by indices from memory: gathers, reports of indices out of range, stores under conditions, updates of
// elements.
#include <gtest/gtest.h>

#include "kernel_harness.h"

namespace cresset::codegen::cpu {
namespace {

using loop::BufferId;
using loop::Combine;
using loop::ExprId;
using loop::kNothingReported;
using loop::Op;
using loop::ScalarId;

BufferId report(KernelBuilder& k, size_t sites) {
  const BufferId out = k.output(DType::I64, static_cast<int64_t>(sites));
  set_data(k, out, std::vector<int64_t>(sites, kNothingReported));
  return out;
}

// out[i, j] = table[index[i], j]
void embedding(KernelBuilder& k, std::vector<int64_t> indices, int64_t rows, int64_t width, DType dtype) {
  const auto n = static_cast<int64_t>(indices.size());
  const ExprId extent = k.size(rows), cols = k.size(width), i = k.outer(k.size(n)), j = k.outer(cols);
  const BufferId index = k.input(DType::I64, n), table = k.input(dtype, rows * width), out = k.output(dtype, n * width);
  set_data(k, index, indices);
  const auto row = k.b.checked_index(k.load(index, i), extent, report(k, 1), 0);
  const ExprId from = k.pool.add(k.pool.mul(row.index, cols), j), to = k.pool.add(k.pool.mul(i, cols), j);
  k.store(out, to, k.b.load(table, from, row.mask));
}

TEST(CodegenGather, RowsOfATable) {
  for (DType dtype : {DType::F32, DType::BF16, DType::I64, DType::Bool}) {
    for (int64_t width : {1, 3, 32, 40}) {
      KernelBuilder k;
      embedding(k, {4, 0, 4, 9, 2, 7, 7}, 10, width, dtype);
      expect_same(k);
    }
  }
}

TEST(CodegenGather, AnIndexOutOfRangeIsReported) {
  for (int64_t bad : {int64_t{-1}, int64_t{10}, int64_t{1} << 40, INT64_MAX, INT64_MIN + 1}) {
    for (int64_t width : {1, 32}) {
      KernelBuilder k;
      embedding(k, {4, 0, bad, 9, 2}, 10, width, DType::F32);
      expect_same(k);
      const BufferId reports{static_cast<uint32_t>(k.kernel.buffers.size() - 1)};
      run_kernel(k, [&](const Memory& got, const std::string& name) {
        EXPECT_EQ(*reinterpret_cast<const int64_t*>(got.bytes[reports.index].data()), bad) << name;
      });
    }
  }
}

TEST(CodegenGather, AnEmptyTableIsNotRead) {
  KernelBuilder k;
  const ExprId extent = k.size(0), i = k.outer(k.size(20));
  const BufferId index = k.input(DType::I64, 20), table = k.input(DType::F32, 0), out = k.output(DType::F32, 20);
  set_data(k, index, std::vector<int64_t>(20, 3));
  const auto at = k.b.checked_index(k.load(index, i), extent, report(k, 1), 0);
  k.store(out, i, k.b.load(table, at.index, at.mask));
  expect_same(k);
}

// Sums of gathered rows: the check stands at the points of a reduction.
TEST(CodegenGather, ReductionsOfGatheredElements) {
  for (int64_t width : {5, 64, 300}) {
    KernelBuilder k;
    const int64_t rows = 6, size = 50;
    const ExprId extent = k.size(size), cols = k.size(width), i = k.outer(k.size(rows)), j = k.inner(cols);
    const BufferId index = k.input(DType::I64, rows * width), table = k.input(DType::F32, size);
    std::vector<int64_t> indices;
    for (int64_t e = 0; e < rows * width; ++e) indices.push_back(e * 7 % size);
    indices[static_cast<size_t>(2 * width)] = 50;
    set_data(k, index, indices);
    const ScalarId loaded = k.load(index, k.pool.add(k.pool.mul(i, cols), j));
    const auto at = k.b.checked_index(loaded, extent, report(k, 2), 1);
    k.store(k.output(DType::F32, rows), i, k.b.reduce(Combine::Sum, k.b.load(table, at.index, at.mask)));
    expect_same(k, {.ulps = 8, .absolute = 1e-5});
  }
}

TEST(CodegenGather, StoresUnderConditions) {
  for (DType dtype : {DType::F32, DType::BF16, DType::I64, DType::Bool}) {
    for (int64_t step : {1, 2, -1}) {
      for (int64_t n : {1, 17, 64}) {
        KernelBuilder k;
        const ExprId size = k.size(n), i = k.outer(size);
        ExprId at = k.pool.mul(i, k.pool.constant(step));
        if (step < 0) at = k.pool.sub(k.pool.add(at, size), k.pool.constant(1));
        const int64_t span = std::abs(step) * (n - 1) + 1;
        const BufferId out = k.output(dtype, span);
        k.data[out.index].assign(static_cast<size_t>(span * byte_size(dtype)), 0);
        const ScalarId x = k.load(k.input(DType::F32, n), i), y = k.load(k.input(dtype, n), i);
        k.store(out, at, y);
        k.kernel.stores.back().condition = k.b.binary(Op::Lt, x, k.b.constant(DType::F32, 0));
        expect_same(k);
      }
    }
  }
}

// A condition of a whole row, and a condition at the points of a row.
TEST(CodegenGather, ConditionsInRows) {
  for (int64_t width : {3, 64}) {
    KernelBuilder k;
    const int64_t rows = 9;
    const ExprId cols = k.size(width), i = k.outer(k.size(rows)), j = k.inner(cols);
    const ExprId at = k.pool.add(k.pool.mul(i, cols), j);
    const ScalarId x = k.load(k.input(DType::F32, rows * width), at), most = k.b.reduce(Combine::Max, x);
    const BufferId tops = k.output(DType::F32, rows), points = k.output(DType::F32, rows * width);
    set_data(k, tops, std::vector<float>(static_cast<size_t>(rows), -5));
    set_data(k, points, std::vector<float>(static_cast<size_t>(rows * width), -6));
    k.store(tops, i, most);
    k.kernel.stores.back().condition = k.b.binary(Op::Gt, most, k.b.constant(DType::F32, 2));
    k.store(points, at, k.b.binary(Op::Sub, x, most));
    k.kernel.stores.back().condition = k.b.binary(Op::Lt, x, k.b.constant(DType::F32, 0));
    expect_same(k);
  }
}

// out[index[i], j] += x[i, j], as in the gradient of an embedding: rows meet.
TEST(CodegenScatter, ElementsAreUpdated) {
  const auto check = [](DType dtype, Combine combine, int64_t width) {
    KernelBuilder k;
    const int64_t n = 37, rows = 5;
    const ExprId extent = k.size(rows), cols = k.size(width), i = k.outer(k.size(n)), j = k.outer(cols);
    const BufferId index = k.input(DType::I64, n), x = k.input(dtype, n * width), out = k.output(dtype, rows * width);
    std::vector<int64_t> indices;
    for (int64_t e = 0; e < n; ++e) indices.push_back(e * e % rows);
    set_data(k, index, indices);
    const auto row = k.b.checked_index(k.load(index, i), extent, report(k, 1), 0);
    const ScalarId value = k.load(x, k.pool.add(k.pool.mul(i, cols), j));
    k.store(out, k.pool.add(k.pool.mul(row.index, cols), j), value);
    k.kernel.stores.back().combine = combine;
    if (row.mask) k.kernel.stores.back().condition = *row.mask;
    expect_same(k, {.ulps = 64, .absolute = 1e-5});
  };
  for (const int64_t width : {1, 4, 33})
    for (DType dtype : {DType::F32, DType::F64, DType::I32, DType::I64}) check(dtype, Combine::Sum, width);
  for (const Combine combine : {Combine::Max, Combine::Min})
    for (DType dtype : {DType::I32, DType::I64}) check(dtype, combine, 8);
}

}  // namespace
}  // namespace cresset::codegen::cpu
