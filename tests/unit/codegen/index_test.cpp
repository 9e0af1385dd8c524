// Addresses: strides, masks, indirect access, division, in-place stores, many dimensions.
#include <gtest/gtest.h>

#include <cstdlib>

#include "codegen/cpu/schedule.h"
#include "kernel_harness.h"

namespace cresset::codegen::cpu {
namespace {

using loop::ExprId;
using loop::Op;
using loop::ScalarId;

TEST(CodegenIndex, StridesOneZeroAndOthers) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F64, DType::I64, DType::U8, DType::Bool}) {
    KernelBuilder k;
    const int64_t n = 45;
    const ExprId i = k.outer(k.size(n)), step = k.size(3);
    const auto x = k.input(dtype, 3 * n), y = k.input(dtype, 1), out = k.output(dtype, 2 * n);
    k.data[out.index].assign(static_cast<size_t>(2 * n * byte_size(dtype)), 0);
    const ScalarId a = k.load(x, k.pool.mul(i, step)), b = k.load(y, k.pool.constant(0));
    k.store(out, k.pool.mul(i, k.pool.constant(2)), k.b.binary(dtype == DType::Bool ? Op::BitXor : Op::Add, a, b));
    expect_same(k);
  }
}

TEST(CodegenIndex, ReversedRows) {
  KernelBuilder k;
  const int64_t n = 77;
  const ExprId size = k.size(n), i = k.outer(size);
  const auto x = k.input(DType::F32, n), out = k.output(DType::F32, n);
  k.store(out, i, k.load(x, k.pool.sub(k.pool.sub(size, i), k.pool.constant(1))));
  expect_same(k);
}

// Whole vectors are read and written, but nothing outside of the lanes' span.
TEST(CodegenIndex, SmallConstantStrides) {
  for (DType dtype : {DType::F32, DType::F16, DType::F64, DType::I64, DType::U8, DType::Bool}) {
    for (int64_t step : {-1, 2, 3, 4}) {
      for (int64_t n : {1, 5, 16, 33, 70}) {
        KernelBuilder k;
        const int64_t span = std::abs(step) * (n - 1) + 1;
        const ExprId size = k.size(n), i = k.outer(size);
        ExprId at = k.pool.mul(i, k.pool.constant(step));
        if (step < 0) at = k.pool.sub(k.pool.add(at, size), k.pool.constant(1));
        const auto x = k.input(dtype, span), y = k.input(dtype, n), out = k.output(dtype, span),
                   dense = k.output(dtype, n);
        k.data[out.index].assign(static_cast<size_t>(span * byte_size(dtype)), 0);
        k.store(dense, i, k.load(x, at));
        k.store(out, at, k.load(y, i));
        expect_same(k);
      }
    }
  }
}

TEST(CodegenIndex, StridedInRowsOfAnyLength) {
  for (int64_t width : {1, 3, 16, 17, 40}) {
    KernelBuilder k;
    const int64_t rows = 6;
    const ExprId cols = k.size(width), i = k.outer(k.size(rows)), j = k.outer(cols);
    const ExprId at = k.pool.add(k.pool.mul(i, cols), j), two = k.pool.constant(2);
    const ExprId turned = k.pool.add(k.pool.mul(i, cols), k.pool.sub(k.pool.sub(cols, j), k.pool.constant(1)));
    const auto x = k.input(DType::F32, 2 * rows * width), y = k.input(DType::F32, rows * width);
    const ScalarId sum = k.b.binary(Op::Add, k.load(x, k.pool.mul(at, two)), k.load(y, turned));
    k.store(k.output(DType::F32, rows * width), at, sum);
    expect_same(k);
  }
}

TEST(CodegenIndex, MaskedLoadsPad) {
  for (DType dtype : {DType::F32, DType::BF16, DType::I64, DType::Bool}) {
    KernelBuilder k;
    const int64_t n = 50, pad = 9;
    const ExprId size = k.size(n), total = k.pool.add(size, k.pool.constant(2 * pad));
    const ExprId i = k.outer(total), from = k.pool.sub(i, k.pool.constant(pad));
    const auto x = k.input(dtype, n), row = k.input(DType::F32, 1), out = k.output(dtype, n + 2 * pad);
    const ScalarId at = k.b.size(from), zero = k.b.constant_int(DType::I64, 0);
    const ScalarId inside =
        k.b.binary(Op::BitAnd, k.b.binary(Op::Ge, at, zero), k.b.binary(Op::Lt, at, k.b.size(size)));
    const ScalarId v = k.b.load(x, from, inside);
    const ScalarId uniform = k.b.load(row, k.pool.constant(0), inside);
    const ScalarId flag = k.b.binary(Op::Ne, uniform, k.b.constant(DType::F32, 0));
    k.store(out, i, v);
    k.store(k.output(DType::Bool, n + 2 * pad), i, flag);
    expect_same(k);
  }
}

// Positions beside a bound that all lanes of a row share: a number, a size, or data, which may be anything.
TEST(CodegenIndex, PositionsBesideABound) {
  const std::vector<int64_t> bounds{0,          7,           16,        38,        -3,           1000,
                                    4294967296, -4294967290, INT64_MAX, INT64_MIN, INT64_MIN + 4};
  for (int64_t width : {1, 5, 16, 37, 64}) {
    KernelBuilder k;
    const int64_t rows = static_cast<int64_t>(bounds.size());
    const ExprId cols = k.size(width), i = k.outer(k.size(rows)), j = k.outer(cols);
    const ExprId at = k.pool.add(k.pool.mul(i, cols), j);
    const auto limits = k.input(DType::I64, rows);
    set_data(k, limits, bounds);
    const ScalarId position = k.b.size(k.pool.add(j, k.pool.constant(3))), limit = k.load(limits, i);
    const ScalarId row = k.b.size(k.pool.mul(i, k.pool.constant(5)));
    for (Op op : {Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge}) {
      const ScalarId data = k.b.binary(op, position, limit), turned = k.b.binary(op, limit, position);
      const ScalarId sizes = k.b.binary(op, row, position);
      k.store(k.output(DType::Bool, rows * width), at, data);
      k.store(k.output(DType::Bool, rows * width), at, turned);
      k.store(k.output(DType::Bool, rows * width), at, sizes);
    }
    expect_same(k);
  }
}

TEST(CodegenIndex, EmbeddingLookup) {
  KernelBuilder k;
  const int64_t tokens = 13, width = 40, vocabulary = 29;
  const ExprId cols = k.size(width), i = k.outer(k.size(tokens)), j = k.outer(cols);
  const auto index = k.input(DType::I64, tokens), table = k.input(DType::F32, vocabulary * width),
             out = k.output(DType::F32, tokens * width);
  std::vector<int64_t> rows;
  for (int64_t t = 0; t < tokens; ++t) rows.push_back((t * 11) % vocabulary);
  set_data(k, index, rows);
  const ExprId row = k.b.bind_index(k.load(index, i));
  k.store(out, k.pool.add(k.pool.mul(i, cols), j), k.load(table, k.pool.add(k.pool.mul(row, cols), j)));
  expect_same(k);
}

TEST(CodegenIndex, GatherAlongTheVectorAndScatter) {
  KernelBuilder k;
  const int64_t n = 150;
  const ExprId i = k.outer(k.size(n));
  const auto index = k.input(DType::I32, n), x = k.input(DType::F32, n), out = k.output(DType::F32, n);
  std::vector<int32_t> order;
  for (int64_t t = 0; t < n; ++t) order.push_back(static_cast<int32_t>((t * 67 + 5) % n));
  set_data(k, index, order);
  const ExprId at = k.b.bind_index(k.b.cast(k.load(index, i), DType::I64));
  k.store(out, at, k.b.binary(Op::Add, k.load(x, at), k.load(x, i)));
  expect_same(k);
}

TEST(CodegenIndex, FloorDivAndModOfLoopVariables) {
  KernelBuilder k;
  const int64_t n = 210;
  const ExprId i = k.outer(k.size(n)), seven = k.size(7), shifted = k.pool.sub(i, k.pool.constant(100));
  const auto x = k.input(DType::F32, n);
  const ExprId swapped = k.pool.add(k.pool.mul(k.pool.mod(i, seven), k.pool.constant(30)), k.pool.floor_div(i, seven));
  k.store(k.output(DType::F32, n), i, k.load(x, swapped));
  k.store(k.output(DType::I64, n), i, k.b.size(k.pool.floor_div(shifted, k.pool.constant(8))));
  k.store(k.output(DType::I64, n), i, k.b.size(k.pool.mod(shifted, k.pool.constant(8))));
  k.store(k.output(DType::I64, n), i, k.b.size(k.pool.mod(shifted, seven)));
  k.store(k.output(DType::I64, n), i, k.b.size(k.pool.min(shifted, k.pool.max(seven, k.pool.neg(i)))));
  expect_same(k);
}

// No loop can be split here: lanes divide, by a reciprocal where the machine has the conversions.
TEST(CodegenIndex, LanesDivideBySizes) {
  for (int64_t by : {1, 3, 7, 97, 1000003}) {
    for (int64_t factor : {int64_t{1}, int64_t{12345}, int64_t{1} << 45, (int64_t{1} << 53) - 111}) {
      KernelBuilder k;
      const int64_t n = 100;
      const ExprId i = k.outer(k.size(n)), divisor = k.size(by);
      const ExprId value = k.pool.add(k.pool.mul(i, k.size(factor)), k.size(by - 1));
      k.store(k.output(DType::I64, n), i, k.b.size(k.pool.floor_div(value, divisor)));
      k.store(k.output(DType::I64, n), i, k.b.size(k.pool.mod(value, divisor)));
      expect_same(k);
    }
  }
}

// Runs of neighbours that no loop's bounds show: rows that begin anywhere in a run, cross from one to the next, run
// backwards or in steps, under masks and in tails; runs longer and shorter than vectors.
TEST(CodegenIndex, RunsBetweenQuotients) {
  for (const auto& [run, n] : {std::pair{64, 100}, {40, 96}, {7, 31}, {1, 40}, {1000, 500}}) {
    for (const int64_t step : {1, -1, 3}) {
      KernelBuilder k;
      const int64_t rows = 5, most = rows * 61 + 3 * n;
      const ExprId row = k.outer(k.size(rows)), i = k.outer(k.size(n)), length = k.size(run);
      const ExprId line = k.pool.mul(i, k.pool.constant(step));
      const ExprId start = k.pool.add(k.pool.mul(row, k.size(61)), k.pool.constant(step < 0 ? n : 0));
      const ExprId at = k.pool.add(start, line);
      const ExprId in_run = k.pool.mod(at, length), which = k.pool.floor_div(at, length);
      const auto x = k.input(DType::F32, most + run * 2);
      const ExprId from =
          k.pool.add(k.pool.mul(k.pool.mod(k.pool.add(which, k.pool.constant(2)), k.size(3)), length), in_run);
      const auto wide = k.input(DType::F32, run * 3);
      const ScalarId mask = k.b.binary(Op::Lt, k.b.size(i), k.b.size(k.size(n - 3)));
      const ExprId to = k.pool.add(k.pool.mul(row, k.size(n)), i);
      k.store(k.output(DType::F32, rows * n), to, k.load(wide, from));
      k.store(k.output(DType::F32, rows * n), to, k.b.load(wide, from, mask));
      k.store(k.output(DType::F32, rows * n), to, k.load(x, k.pool.add(k.pool.mul(which, length), in_run)));
      expect_same(k);
    }
  }
}

// What counts down from a loop's extent is not negative inside of it, whatever it is in lanes past the end: divided
// without signs, along the lanes and across them.
TEST(CodegenIndex, DividendsThatCountDown) {
  for (const auto& [rows, n, run] : {std::tuple{9, 50, 51}, {50, 9, 7}, {33, 33, 34}, {5, 70, 1}, {40, 3, 1000}}) {
    for (const bool across : {false, true}) {
      KernelBuilder k;
      const ExprId height = k.size(rows), width = k.size(n), length = k.size(run);
      const ExprId i = k.outer(height), j = k.outer(width);
      const ExprId left = across ? k.pool.sub(width, j) : k.pool.sub(height, i);
      const ExprId at = k.pool.add(left, across ? i : j), to = k.pool.add(k.pool.mul(i, width), j);
      const ExprId in_run = k.pool.mod(at, length), which = k.pool.floor_div(at, length);
      const auto x = k.input(DType::F32, rows + n + run + 1);
      k.store(k.output(DType::F32, rows * n), to, k.load(x, k.pool.add(k.pool.mul(which, length), in_run)));
      k.store(k.output(DType::F32, rows * n), to, k.load(x, in_run));
      k.store(k.output(DType::I64, rows * n), to, k.b.size(which));
      EXPECT_FALSE(make_schedule(k.kernel, 512).unsigned_division.empty());
      expect_same(k);
    }
  }
}

// A flattened dimension that an address takes apart again is two loops, which nothing divides.
TEST(CodegenIndex, LoopsThatAddressesDivideAreSplit) {
  KernelBuilder k;
  const ExprId heads = k.size(6), width = k.size(20), rows = k.size(9);
  const ExprId n = k.outer(rows), c = k.outer(k.pool.mul(heads, width));
  const ExprId head = k.pool.floor_div(c, width), at = k.pool.mod(c, width);
  const auto x = k.input(DType::F32, 9 * 120), out = k.output(DType::F32, 9 * 120);
  const ExprId from = k.pool.add(k.pool.mul(k.pool.add(k.pool.mul(head, rows), n), width), at);
  k.store(out, k.pool.add(k.pool.mul(n, k.pool.mul(heads, width)), c), k.load(x, from));
  const Schedule schedule = make_schedule(k.kernel, 512);
  EXPECT_EQ(schedule.loops.size(), 3u);
  EXPECT_TRUE(schedule.unsigned_division.empty());
  expect_same(k);
}

TEST(CodegenIndex, InPlace) {
  KernelBuilder k;
  const ExprId rows = k.size(4), cols = k.size(67), i = k.outer(rows), j = k.inner(cols);
  const auto x = k.output(DType::F32, 4 * 67);
  k.kernel.buffers[x.index].read = true;
  const ExprId at = k.pool.add(k.pool.mul(i, cols), j);
  const ScalarId v = k.load(x, at);
  const ScalarId shifted = k.b.binary(Op::Sub, v, k.b.reduce(loop::Combine::Max, v));
  k.store(x, at, shifted);
  k.store(k.output(DType::F32, 4 * 67), at, v);  // the old value, stored after
  expect_same(k);
}

// What a row writes in place is read by all of its blocks.
TEST(CodegenIndex, InPlaceOfRows) {
  KernelBuilder k;
  const ExprId rows = k.size(4), cols = k.size(67), i = k.outer(rows), j = k.inner(cols);
  const auto x = k.output(DType::F32, 4);
  k.kernel.buffers[x.index].read = true;
  const ScalarId old = k.load(x, i);
  const ScalarId v = k.load(k.input(DType::F32, 4 * 67), k.pool.add(k.pool.mul(i, cols), j));
  const ScalarId sum = k.b.reduce(loop::Combine::Sum, k.b.binary(Op::Mul, v, old));
  k.store(x, i, sum);
  k.store(k.output(DType::F32, 4 * 67), k.pool.add(k.pool.mul(i, cols), j), k.b.binary(Op::Sub, v, sum));
  expect_same(k, {.ulps = 16});
}

TEST(CodegenIndex, FiveDimensionsPermuted) {
  KernelBuilder k;
  const int64_t e[5] = {2, 3, 4, 5, 6};
  ExprId size[5], v[5];
  for (int d = 0; d < 5; ++d) size[d] = k.size(e[d]);
  for (int d = 0; d < 5; ++d) v[d] = k.outer(size[d]);
  auto address = [&](std::vector<int> order) {
    ExprId at = k.pool.constant(0);
    for (int d : order) at = k.pool.add(k.pool.mul(at, size[d]), v[d]);
    return at;
  };
  const auto x = k.input(DType::F32, 720), y = k.input(DType::F32, 720), out = k.output(DType::F32, 720);
  k.store(out, address({0, 1, 2, 3, 4}),
          k.b.binary(Op::Add, k.load(x, address({4, 2, 0, 1, 3})), k.load(y, address({0, 2, 1, 3, 4}))));
  expect_same(k);
}

// [n, c, h * w] to [n, h * w, c] with a bias on each side: tiles, with tails in both directions.
TEST(CodegenIndex, TransposeOfPlanes) {
  for (DType dtype : {DType::F32, DType::BF16, DType::I32, DType::U8, DType::F64}) {
    for (auto [channels, area] :
         {std::pair<int64_t, int64_t>{3, 50}, {16, 16}, {7, 9}, {8, 40}, {37, 65}, {20, 7}, {70, 300}, {8, 0}}) {
      KernelBuilder k;
      const ExprId n = k.size(2), c = k.size(channels), hw = k.size(area);
      const ExprId i = k.outer(n), p = k.outer(hw), j = k.outer(c);
      const auto x = k.input(dtype, 2 * channels * area), bias = k.input(dtype, channels), spot = k.input(dtype, area),
                 out = k.output(dtype, 2 * channels * area);
      const ExprId from = k.pool.add(k.pool.mul(k.pool.add(k.pool.mul(i, c), j), hw), p);
      const ExprId to = k.pool.add(k.pool.mul(k.pool.add(k.pool.mul(i, hw), p), c), j);
      k.store(out, to, k.b.binary(Op::Add, k.b.binary(Op::Add, k.load(x, from), k.load(bias, j)), k.load(spot, p)));
      expect_same(k);
    }
  }
}

TEST(CodegenIndex, ChannelsLastCollapses) {
  KernelBuilder k;
  const ExprId n = k.size(2), c = k.size(5), hw = k.size(33);
  const ExprId i = k.outer(n), j = k.outer(c), p = k.outer(hw);
  const ExprId at = k.pool.add(k.pool.mul(k.pool.add(k.pool.mul(i, hw), p), c), j);
  const auto x = k.input(DType::F32, 330), bias = k.input(DType::F32, 5), out = k.output(DType::F32, 330);
  k.store(out, at, k.b.binary(Op::Add, k.load(x, at), k.load(bias, j)));
  expect_same(k);
}

}  // namespace
}  // namespace cresset::codegen::cpu
