// The generator of random numbers.
#include <gtest/gtest.h>

#include "kernel_harness.h"
#include "loop/scalar_eval.h"

namespace cresset::codegen::cpu {
namespace {

using loop::ExprId;
using loop::Op;
using loop::ScalarId;

int64_t philox(int64_t seed, int64_t stream, int64_t position) {
  const loop::Scalar scalar{.op = Op::Philox, .dtype = DType::I64};
  return loop::apply(scalar, DType::I64, {0, seed}, {0, stream}, {0, position}).integer;
}

// The first of the published known answers of Philox 4x32-10.
TEST(CodegenRandom, KnownAnswers) {
  const int64_t words[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(philox(0, 0, i), words[i]);
}

// random(seed, stream, first + step * i), with the seed in memory.
void numbers(KernelBuilder& k, int64_t n, int64_t first, int64_t step, bool stream_varies) {
  const ExprId i = k.outer(k.size(n));
  const auto seed = k.input(DType::I64, 2);
  set_data(k, seed, std::vector<int64_t>{0x123456789abcdef, first});
  const ScalarId offset = k.load(seed, k.pool.constant(1));
  const ScalarId position = k.b.binary(Op::Add, offset, k.b.size(k.pool.mul(i, k.pool.constant(step))));
  const ScalarId stream = stream_varies ? k.b.size(i) : k.b.constant_int(DType::I64, 77);
  k.store(k.output(DType::I64, n), i, k.b.philox(k.load(seed, k.pool.constant(0)), stream, position));
}

TEST(CodegenRandom, NeighboursShareBlocks) {
  for (const int64_t n : {1, 4, 31, 64, 200})
    for (const int64_t first : {int64_t{0}, int64_t{3}, int64_t{1} << 40}) {
      KernelBuilder k;
      numbers(k, n, first, 1, false);
      expect_same(k);
    }
}

TEST(CodegenRandom, StreamsAndSteps) {
  for (const bool stream_varies : {false, true})
    for (const int64_t step : {0, 1, 4, 5}) {
      KernelBuilder k;
      numbers(k, 64, 8, step, stream_varies);
      expect_same(k);
    }
}

// Neighbours in groups of a power of two, where each group has a stream, as eager mode's dropout on GPUs has them.
// Groups of four share a block; smaller ones do not.
TEST(CodegenRandom, GroupsHaveStreams) {
  for (const int64_t n : {4, 30, 64, 200})
    for (const int64_t log : {0, 1, 2, 3})
      for (const int64_t first : {int64_t{4}, int64_t{6}, int64_t{1} << 34}) {
        KernelBuilder k;
        const ExprId i = k.outer(k.size(n));
        const auto seed = k.input(DType::I64, 3);
        set_data(k, seed, std::vector<int64_t>{0x123456789abcdef, first, log});
        const auto loaded = [&](int64_t at) { return k.load(seed, k.pool.constant(at)); };
        const ScalarId element = k.b.size(i), shift = loaded(2);
        const ScalarId stream = k.b.binary(Op::ShiftRight, element, shift);
        const ScalarId inside = k.b.binary(Op::Sub, element, k.b.binary(Op::ShiftLeft, stream, shift));
        const ScalarId position = k.b.binary(Op::Add, loaded(1), inside);
        k.store(k.output(DType::I64, n), i, k.b.philox(loaded(0), stream, position));
        expect_same(k);
      }
}

// An element takes the two numbers of an aligned pair.
TEST(CodegenRandom, PairsOfNumbers) {
  for (const int64_t n : {4, 31, 64}) {
    KernelBuilder k;
    const ExprId i = k.outer(k.size(n));
    const auto seed = k.input(DType::I64, 1);
    set_data(k, seed, std::vector<int64_t>{77});
    const ScalarId key = k.load(seed, k.pool.constant(0)), element = k.b.size(i);
    const ScalarId even = k.b.binary(Op::BitAnd, element, k.b.constant_int(DType::I64, -2));
    const ScalarId odd = k.b.binary(Op::BitOr, even, k.b.constant_int(DType::I64, 1));
    k.store(k.output(DType::I64, n), i,
            k.b.binary(Op::Sub, k.b.philox(key, element, even), k.b.philox(key, element, odd)));
    expect_same(k);
  }
}

// Dropout: a number below the bound keeps the element.
TEST(CodegenRandom, Dropout) {
  for (DType dtype : {DType::F32, DType::BF16}) {
    for (int64_t n : {100, 256}) {
      KernelBuilder k;
      const ExprId i = k.outer(k.size(n));
      const auto seed = k.input(DType::I64, 2);
      set_data(k, seed, std::vector<int64_t>{42, 4096});
      const ScalarId position = k.b.binary(Op::Add, k.load(seed, k.pool.constant(1)), k.b.size(i));
      const ScalarId bits = k.b.philox(k.load(seed, k.pool.constant(0)), k.b.constant_int(DType::I64, 0), position);
      const ScalarId uniform = k.b.binary(Op::Mul, k.b.cast(bits, DType::F32), k.b.constant(DType::F32, 0x1p-32));
      const ScalarId keep = k.b.binary(Op::Lt, uniform, k.b.constant(DType::F32, 0.9));
      const ScalarId x = k.load(k.input(dtype, n), i);
      const ScalarId scaled = k.b.binary(Op::Mul, x, k.b.constant(DType::F32, 1 / 0.9));
      k.store(k.output(dtype, n), i, k.b.select(keep, scaled, k.b.constant(DType::F32, 0)));
      k.store(k.output(DType::Bool, n), i, keep);
      expect_same(k, {.ulps = 1});
    }
  }
}

}  // namespace
}  // namespace cresset::codegen::cpu
