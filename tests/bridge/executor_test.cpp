// The executor on programs made by hand: homes, views, outputs, mutation, errors, threads.
#include "bridge/executor/executor.h"

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "bridge/device/cpu/arena.h"
#include "bridge/device/cpu/result_allocator.h"
#include "bridge/program_builder.h"

namespace cresset::bridge {
namespace {

using runtime::Home;
using runtime::TensorId;

TEST(Executor, RunsAKernelIntoAFreshOutput) {
  ProgramBuilder b;
  const auto n = b.symbol();
  const TensorId x = b.input({n});
  const TensorId out = b.slot(Home::Fresh, {n});
  b.launch(double_kernel, {x, out}, n);
  const auto executor = b.build({out});
  for (const int64_t size : {5, 7, 5, 0, 1}) {
    const at::Tensor value = at::randn({size});
    const auto results = executor->run({value}, {size});
    ASSERT_EQ(results.size(), 1U);
    EXPECT_TRUE(at::equal(results[0], value * 2));
    EXPECT_FALSE(results[0].requires_grad());
  }
  EXPECT_EQ(executor->stats().calls, 5);
  EXPECT_EQ(executor->stats().contexts_bound, 4);
}

TEST(Executor, OutputsOfTwoCallsDoNotShareMemory) {
  ProgramBuilder b;
  const TensorId x = b.input({b.c(4)});
  const TensorId out = b.slot(Home::Fresh, {b.c(4)});
  b.launch(double_kernel, {x, out}, b.c(4));
  const auto executor = b.build({out});
  const auto first = executor->run({at::ones({4})}, {});
  const auto second = executor->run({at::zeros({4})}, {});
  EXPECT_TRUE(at::equal(first[0], at::full({4}, 2.F)));
  EXPECT_TRUE(at::equal(second[0], at::zeros({4})));
}

// A training step frees more than is always kept, and needs it again; who trains no more gets it back.
TEST(Executor, AsMuchIsKeptAsWasHeldOfLate) {
  constexpr int64_t kBytes = int64_t{64} << 20, kCount = 6;
  const ReuseResultMemory reuse;
  const auto make = [](int64_t bytes) { return at::empty({bytes}, at::kByte); };
  trim_result_memory();
  const ResultMemoryStats before = result_memory_stats();
  for (int step = 0; step < 2; ++step) {
    std::vector<at::Tensor> saved;
    for (int64_t i = 0; i < kCount; ++i) saved.push_back(make(kBytes));
  }
  EXPECT_EQ(result_memory_stats().bytes_kept, kCount * kBytes);
  EXPECT_EQ(result_memory_stats().blocks_mapped, before.blocks_mapped + kCount);
  for (int i = 0; i < 3 * 4096; ++i) make(int64_t{1} << 20);
  EXPECT_LE(result_memory_stats().bytes_kept, int64_t{256} << 20);
  trim_result_memory();
}

TEST(Executor, LargeResultsUseTheMemoryOfThoseThatDied) {
  constexpr int64_t kLarge = int64_t{1} << 20;  // 4 MiB of floats
  ProgramBuilder b;
  const TensorId x = b.input({b.c(kLarge)});
  const TensorId out = b.slot(Home::Fresh, {b.c(kLarge)});
  b.launch(double_kernel, {x, out}, b.c(kLarge));
  const auto executor = b.build({out});
  trim_result_memory();
  const at::Tensor ones = at::ones({kLarge}), input = ones * 3;
  at::Tensor held = executor->run({ones}, {})[0];
  const void* other = executor->run({input}, {})[0].const_data_ptr();  // died at once
  EXPECT_NE(other, held.const_data_ptr());
  const at::Tensor again = executor->run({input}, {})[0];
  EXPECT_EQ(other, again.const_data_ptr());
  EXPECT_TRUE(at::equal(held, ones * 2));
  EXPECT_TRUE(at::equal(again, ones * 6));
  const ResultMemoryStats before = result_memory_stats();
  EXPECT_EQ(before.bytes_in_use, 2 * kLarge * 4);
  at::empty({kLarge});  // outside of a call nothing comes from there
  EXPECT_EQ(result_memory_stats().bytes_in_use, before.bytes_in_use);
  // Whoever keeps the address alone frees it through the allocator.
  void* address = held.storage().set_data_ptr(at::DataPtr()).release_context();
  held.reset();
  c10::GetCPUAllocator()->raw_deallocate(address);
  EXPECT_EQ(result_memory_stats().bytes_kept, kLarge * 4);
  trim_result_memory();
  EXPECT_EQ(result_memory_stats().bytes_kept, 0);
}

TEST(ResultMemory, AllocationsOfExactlyAPlacesBytesGetIt) {
  alignas(64) static char memory[3 * 8192];
  const ReuseResultMemory reuse;
  const PlaceResults placed({{memory, 8192}}, {{memory + 8192, 8192}, {memory + 16384, 4096 + 64}});
  at::Tensor first = at::empty({2048});
  EXPECT_EQ(first.const_data_ptr(), memory);
  EXPECT_TRUE(placed.any_taken());
  const at::Tensor in_gap = at::empty({2047}), in_smaller = at::empty({1025});  // the tightest gap that fits
  EXPECT_EQ(in_gap.const_data_ptr(), memory + 8192);
  EXPECT_EQ(in_smaller.const_data_ptr(), memory + 16384);
  EXPECT_TRUE(PlaceResults::holds(in_gap.const_data_ptr()));
  const at::Tensor elsewhere = at::empty({2048}), small = at::empty({8});  // like a result; not worth a gap
  for (const at::Tensor& t : {elsewhere, small}) {
    const auto* data = static_cast<const char*>(t.const_data_ptr());
    EXPECT_TRUE(data < memory || data >= memory + sizeof memory);
  }
  {
    const PlaceResults inner;
    EXPECT_NE(at::empty({1025}).const_data_ptr(), memory);
    EXPECT_FALSE(PlaceResults::holds(memory));
  }
  first.reset();
  EXPECT_EQ(at::empty({2048}).const_data_ptr(), memory);
}

TEST(Executor, AnOutputIsNotMadeInBytesThatAreFreeForTheMoment) {
  ProgramBuilder b;
  const auto n = b.symbol();
  const TensorId x = b.input({n, b.c(4), b.c(16), b.c(16)});
  const TensorId weight = b.constant(at::randn({4, 4, 3, 3}));
  const auto pair = [&](int64_t value) { return b.refs({value, value}); };
  const auto slot = [&](Home home) { return b.slot(home, {n, b.c(4), b.c(16), b.c(16)}); };
  const TensorId twice = slot(Home::Arena), doubled = slot(Home::Fresh), out = slot(Home::Fresh);
  b.launch(double_kernel, {x, twice}, b.pool.mul(n, b.c(1024)));
  b.launch(double_kernel, {twice, doubled}, b.pool.mul(n, b.c(1024)));
  b.call("aten::convolution", {x, weight, graph::None{}, pair(1), pair(1), pair(1), false, pair(0), b.ref(1)}, {out});
  const auto executor = b.build({out, doubled});
  for (const int64_t size : {2, 3}) {
    const at::Tensor value = at::randn({size, 4, 16, 16});
    const std::vector<at::Tensor> results = executor->run({value}, {size});
    EXPECT_TRUE(at::allclose(results[0], at::conv2d(value, b.constants[0], {}, 1, 1), 1e-4, 1e-5));
    EXPECT_TRUE(at::equal(results[1], value * 4));
  }
  EXPECT_EQ(executor->stats().restride_copies, 0);
}

TEST(Executor, OperatorsThatAllocateTheirResultsDoItInTheArena) {
  ProgramBuilder b;
  const auto n = b.symbol();
  const TensorId x = b.input({n, b.c(4), b.c(8), b.c(8)});
  const TensorId weight = b.constant(at::randn({4, 4, 3, 3}));
  const TensorId convolved = b.slot(Home::Arena, {n, b.c(4), b.c(8), b.c(8)});
  const TensorId pooled = b.slot(Home::Arena, {n, b.c(4), b.c(4), b.c(4)});
  const TensorId positions = b.slot(Home::Arena, {n, b.c(4), b.c(4), b.c(4)}, {}, DType::I64);
  const TensorId out = b.slot(Home::Fresh, {n, b.c(4), b.c(4), b.c(4)});
  const auto pair = [&](int64_t value) { return b.refs({value, value}); };
  b.call("aten::convolution", {x, weight, graph::None{}, pair(1), pair(1), pair(1), false, pair(0), b.ref(1)},
         {convolved});
  b.call("aten::max_pool2d_with_indices", {convolved, pair(2), pair(2), pair(0), pair(1), false}, {pooled, positions});
  b.launch(double_kernel, {pooled, out}, b.pool.mul(n, b.c(64)));
  const auto executor = b.build({out});
  for (const int64_t size : {2, 3}) {
    const at::Tensor value = at::randn({size, 4, 8, 8});
    const at::Tensor expected = at::max_pool2d(at::conv2d(value, b.constants[0], {}, 1, 1), 2) * 2;
    EXPECT_TRUE(at::allclose(executor->run({value}, {size})[0], expected, 1e-4, 1e-5));
  }
  EXPECT_EQ(executor->stats().adopted_results, 0);
  EXPECT_EQ(executor->stats().restride_copies, 0);
}

TEST(Executor, TheArenaIsGivenBackAfterItsLastUse) {
  static int64_t held[3];
  const auto recording = [](auto which) {
    return [](void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end, void* scratch) {
      held[decltype(which)::value] = ArenaPool::get().stats().bytes_in_use;
      double_kernel(buffers, sizes, begin, end, scratch);
    };
  };
  ProgramBuilder b;
  const auto slot = [&](Home home, uint32_t first, uint32_t last) {
    const TensorId id = b.slot(home, {b.c(4096)});
    b.program.tensors[id.index].first_step = first;
    b.program.tensors[id.index].last_step = last;
    return id;
  };
  const TensorId x = b.input({b.c(4096)});
  const TensorId between = slot(Home::Arena, 0, 1);
  const TensorId early = slot(Home::Fresh, 0, UINT32_MAX - 1), late = slot(Home::Fresh, 2, UINT32_MAX - 1);
  const TensorId beside = slot(Home::Arena, 0, 1);  // one of the two lies in the late output
  b.launch(recording(std::integral_constant<int, 0>()), {x, between, early, beside}, b.c(4096));
  b.launch(recording(std::integral_constant<int, 1>()), {between, beside}, b.c(4096));
  b.launch(recording(std::integral_constant<int, 2>()), {x, late}, b.c(4096));
  const auto executor = b.build({early, late});
  for (int call = 0; call < 2; ++call) {
    const at::Tensor value = at::randn({4096});
    EXPECT_TRUE(at::equal(executor->run({value}, {})[1], value * 2));
    EXPECT_EQ(executor->stats().arena_bytes, 4096 * 4);
    EXPECT_GT(held[1], held[2]);
    EXPECT_EQ(held[0], held[1]);
  }
}

TEST(Executor, ChainsKernelsAndOperatorsThroughTheArena) {
  ProgramBuilder b;
  const auto n = b.symbol();
  const at::Tensor weight = at::randn({8, 3});
  const TensorId w = b.constant(weight);
  const TensorId x = b.input({n, b.c(8)});
  const TensorId doubled = b.slot(Home::Arena, {n, b.c(8)});
  const TensorId product = b.slot(Home::Arena, {n, b.c(3)});
  const TensorId out = b.slot(Home::Fresh, {n, b.c(3)});
  b.launch(double_kernel, {x, doubled}, b.pool.mul(n, b.c(8)));
  b.call("aten::mm", {doubled, w}, {product});
  b.launch(double_kernel, {product, out}, b.pool.mul(n, b.c(3)));
  const auto executor = b.build({out});
  for (const int64_t size : {2, 3, 2}) {
    const at::Tensor value = at::randn({size, 8});
    EXPECT_TRUE(at::allclose(executor->run({value}, {size})[0], at::mm(value * 2, weight) * 2, 1e-4, 1e-5));
  }
  EXPECT_GT(executor->stats().arena_bytes, 0);
}

TEST(Executor, FollowsAnArenaThatMoves) {
  ProgramBuilder b;
  const auto n = b.symbol();
  const TensorId x = b.input({n, n});
  const TensorId doubled = b.slot(Home::Arena, {n, n});
  const TensorId out = b.slot(Home::Fresh, {n, n});
  b.launch(double_kernel, {x, doubled}, b.pool.mul(n, n));
  b.call("aten::tanh", {doubled}, {out});
  const auto executor = b.build({out});
  const at::Tensor value = at::randn({16, 16});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(at::allclose(executor->run({value}, {16})[0], at::tanh(value * 2)));
    executor->run({at::randn({700 * (i + 1), 700 * (i + 1)})}, {700 * (i + 1)});
    if (i == 1) trim_memory();
  }
}

TEST(Executor, GivesViewsOfInputsToOperators) {
  ProgramBuilder b;
  const auto n = b.symbol();
  const TensorId x = b.input({n, b.c(6)});
  const TensorId transposed = b.view(x, {b.c(2), n}, {b.c(1), b.c(6)}, b.c(3));  // x[:, 3:5].t()
  const TensorId out = b.slot(Home::Fresh, {b.c(2), n});
  b.call("aten::exp", {transposed}, {out});
  const auto executor = b.build({out});
  for (const int64_t size : {4, 5}) {
    // The input may itself be a window of something larger.
    const at::Tensor value = at::randn({size + 2, 6}).slice(0, 1, size + 1);
    EXPECT_TRUE(at::equal(executor->run({value}, {size})[0], at::exp(value.slice(1, 3, 5).t())));
  }
}

TEST(Executor, WritesOperatorsIntoWindows) {
  ProgramBuilder b;
  const TensorId x = b.input({b.c(3)});
  const TensorId out = b.slot(Home::Fresh, {b.c(6)});
  const TensorId low = b.view(out, {b.c(3)}, {b.c(1)}, b.c(0));
  const TensorId high = b.view(out, {b.c(3)}, {b.c(1)}, b.c(3));
  b.call("aten::sin", {x}, {low});
  b.call("aten::cumsum", {x, b.ref(0), graph::None{}}, {high});
  const auto executor = b.build({out});
  const at::Tensor value = at::randn({3});
  EXPECT_TRUE(at::allclose(executor->run({value}, {})[0], at::cat({at::sin(value), at::cumsum(value, 0)})));
}

TEST(Executor, ReturnsInputsConstantsViewsAndRepeats) {
  ProgramBuilder b;
  const at::Tensor held = at::randn({3});
  const TensorId c = b.constant(held);
  const TensorId x = b.input({b.c(2), b.c(3)});
  const TensorId row = b.view(x, {b.c(3)}, {b.c(1)}, b.c(3));
  const TensorId out = b.slot(Home::Fresh, {b.c(2), b.c(3)});
  const TensorId column = b.view(out, {b.c(2)}, {b.c(3)}, b.c(1));
  b.launch(double_kernel, {x, out}, b.c(6));
  const auto executor = b.build({x, c, row, out, out, column});
  const at::Tensor value = at::randn({2, 3});
  const auto results = executor->run({value}, {});
  EXPECT_TRUE(results[0].is_same(value));
  EXPECT_TRUE(results[1].is_same(held));
  EXPECT_TRUE(at::equal(results[2], value[1]));
  EXPECT_TRUE(results[2].is_alias_of(value));
  EXPECT_TRUE(results[3].is_same(results[4]));
  EXPECT_TRUE(results[5].is_alias_of(results[3]));
  EXPECT_TRUE(at::equal(results[5], (value * 2).select(1, 1)));
}

TEST(Executor, WritesBackToInputsAndBumpsTheirVersion) {
  ProgramBuilder b;
  const TensorId x = b.input({b.c(4)});
  const TensorId next = b.slot(Home::Arena, {b.c(4)});
  b.launch(double_kernel, {x, next}, b.c(4));
  b.copy(next, x);
  const auto executor = b.build({});
  const at::Tensor value = at::ones({4});
  const auto before = value._version();
  executor->run({value}, {});
  EXPECT_TRUE(at::equal(value, at::full({4}, 2.F)));
  EXPECT_GT(value._version(), before);
}

TEST(Executor, ParametersMayMoveBetweenCalls) {
  ProgramBuilder b;
  at::Tensor weight = at::ones({2, 2});
  const TensorId w = b.constant(weight);
  const TensorId flipped = b.view(w, {b.c(2), b.c(2)}, {b.c(1), b.c(2)}, b.c(0));
  const TensorId out = b.slot(Home::Fresh, {b.c(2), b.c(2)});
  b.call("aten::exp", {flipped}, {out});
  const auto executor = b.build({out});
  EXPECT_TRUE(at::equal(executor->run({}, {})[0], at::exp(weight.t())));
  weight.set_data(at::randn({2, 2}));
  EXPECT_TRUE(at::equal(executor->run({}, {})[0], at::exp(weight.t())));
}

TEST(Executor, CopiesAResultWhoseStridesAreNotThePlannedOnes) {
  ProgramBuilder b;
  const TensorId x = b.input({b.c(3), b.c(4)});
  const TensorId planned = b.slot(Home::Extern, {b.c(3), b.c(4)}, {b.c(1), b.c(3)});
  const TensorId out = b.slot(Home::Fresh, {b.c(4), b.c(3)});
  const TensorId flat = b.view(planned, {b.c(12)}, {b.c(1)}, b.c(0));
  const TensorId flat_out = b.view(out, {b.c(12)}, {b.c(1)}, b.c(0));
  b.call("aten::sin", {x}, {planned});
  b.launch(double_kernel, {flat, flat_out}, b.c(12));
  const auto executor = b.build({out});
  const at::Tensor value = at::randn({3, 4});
  EXPECT_TRUE(at::allclose(executor->run({value}, {})[0], (at::sin(value) * 2).t()));
  EXPECT_EQ(executor->stats().restride_copies, 1);
}

TEST(Executor, AnOperatorThatReturnsItsArgumentDoesNotLeakTheArena) {
  ProgramBuilder b;
  const TensorId x = b.input({b.c(4)});
  const TensorId doubled = b.slot(Home::Arena, {b.c(4)});
  const TensorId same = b.slot(Home::Extern, {b.c(4)});
  b.launch(double_kernel, {x, doubled}, b.c(4));
  b.call("aten::alias", {doubled}, {same});
  const auto executor = b.build({same});
  const auto first = executor->run({at::ones({4})}, {});
  executor->run({at::zeros({4})}, {});
  EXPECT_TRUE(at::equal(first[0], at::full({4}, 2.F)));
}

TEST(Executor, WhatACallAllocatedIsContinuedInPlaceUnlessItIsSomebodyElses) {
  for (const bool own : {true, false}) {
    ProgramBuilder b;
    const TensorId x = b.input({b.c(4)});
    const TensorId made = b.slot(Home::Extern, {b.c(4)});
    const TensorId continued = b.slot(Home::Arena, {b.c(4)});
    const TensorId out = b.slot(Home::Fresh, {b.c(4)});
    b.program.tensors[continued.index].continues = made;
    b.call(own ? "aten::neg" : "aten::alias", {x}, {made});
    b.launch(double_kernel, {continued, continued}, b.c(4));
    b.launch(double_kernel, {continued, out}, b.c(4));
    const auto executor = b.build({out});
    const at::Tensor value = at::randn({4}), before = value.clone();
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(executor->run({value}, {})[0], (own ? -before : before) * 4));
    EXPECT_TRUE(at::equal(value, before));
    EXPECT_EQ(executor->stats().restride_copies, own ? 0 : 2);
  }
}

TEST(Executor, PassesOnWhatOperatorsRaise) {
  ProgramBuilder b;
  const TensorId x = b.input({b.c(2)});
  const TensorId index = b.input({b.c(1)}, {}, DType::I64);
  const TensorId out = b.slot(Home::Fresh, {b.c(1)});
  b.call("aten::index_select", {x, b.ref(0), index}, {out});
  const auto executor = b.build({out});
  const at::Tensor value = at::randn({2});
  EXPECT_THROW(executor->run({value, at::full({1}, 7, at::kLong)}, {}), c10::Error);
  EXPECT_TRUE(at::equal(executor->run({value, at::full({1}, 1, at::kLong)}, {})[0], value.slice(0, 1)));
}

TEST(Executor, ThreadsRunTheSameExecutorWithDifferentSizes) {
  ProgramBuilder b;
  const auto n = b.symbol();
  const TensorId x = b.input({n, b.c(16)});
  const TensorId doubled = b.slot(Home::Arena, {n, b.c(16)});
  const TensorId out = b.slot(Home::Fresh, {n, b.c(16)});
  b.launch(double_kernel, {x, doubled}, b.pool.mul(n, b.c(16)), /*cost=*/100);
  b.call("aten::tanh", {doubled}, {out});
  const auto executor = b.build({out});
  std::atomic<int> wrong{0};
  const auto work = [&](int64_t first) {
    for (int i = 0; i < 200; ++i) {
      const int64_t size = first + i % 3;
      const at::Tensor value = at::randn({size, 16});
      if (!at::allclose(executor->run({value}, {size})[0], at::tanh(value * 2))) ++wrong;
    }
  };
  std::thread other(work, 50);
  std::thread same_sizes(work, 40);
  work(40);
  other.join();
  same_sizes.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Executor, ScratchIsPrivateToAThread) {
  ProgramBuilder b;
  const auto n = b.symbol();
  const TensorId x = b.input({n});
  const TensorId out = b.slot(Home::Fresh, {n});
  b.launch(
      [](void* const* buffers, const int64_t*, int64_t begin, int64_t end, void* scratch) {
        auto* row = static_cast<float*>(scratch);
        for (int64_t i = begin; i < end; ++i) {
          row[0] = static_cast<const float*>(buffers[0])[i];
          for (int j = 1; j < 64; ++j) row[j] = row[j - 1] + 1;
          static_cast<float*>(buffers[1])[i] = row[63];
        }
      },
      {x, out}, n, /*cost=*/64, /*scratch=*/256);
  const auto executor = b.build({out});
  const at::Tensor value = at::randint(100, {20000}).to(at::kFloat);
  EXPECT_TRUE(at::equal(executor->run({value}, {20000})[0], value + 63));
}

TEST(Executor, IgnoresAutocastAndAutogradState) {
  ProgramBuilder b;
  const TensorId x = b.input({b.c(64), b.c(64)});
  const TensorId out = b.slot(Home::Fresh, {b.c(64), b.c(64)});
  b.call("aten::mm", {x, x}, {out});
  const auto executor = b.build({out});
  const at::Tensor value = at::randn({64, 64}).requires_grad_(true);
  const auto results = executor->run({value}, {});
  EXPECT_FALSE(results[0].requires_grad());
  EXPECT_EQ(results[0].scalar_type(), at::kFloat);
}

TEST(Arena, ReusesTheBlockAskedForAndGrows) {
  ArenaPool& pool = ArenaPool::get();
  pool.trim();
  const ArenaBlock a = pool.acquire(1000, 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data) % 64, 0U);
  pool.release(a);
  const ArenaBlock again = pool.acquire(1000, a.id);
  EXPECT_EQ(again.id, a.id);
  const ArenaBlock other = pool.acquire(1000, a.id);
  EXPECT_NE(other.id, a.id);
  pool.release(again);
  pool.release(other);
  const ArenaBlock large = pool.acquire(size_t{8} << 20, a.id);
  EXPECT_GE(large.bytes, size_t{8} << 20);
  pool.release(large);
  pool.trim();
  EXPECT_EQ(pool.stats().bytes_reserved, 0);
}

}  // namespace
}  // namespace cresset::bridge
