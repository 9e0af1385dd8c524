// The cache of a compiled C++ function: which entry serves a call, how many there are, what they are guarded on.
#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/forward_grad.h>

#include <thread>

#include "cresset/compile.h"

namespace cresset {
namespace {

using Tensors = std::vector<at::Tensor>;

// Makes a sparse tensor where the argument is a vector, which no capture follows.
Tensors sparse_of_vectors(const Tensors& x) {
  if (x[0].dim() == 1) return {x[0].to_sparse().to_dense() * 2 + 1};
  return {x[0] * 2 + 1};
}

Tensors scaled(const Tensors& x) { return {x[0].mm(x[0].t()) * 3}; }

void expect_equal(const CompiledFunction& f, const TensorFunction& eager, const Tensors& x) {
  EXPECT_TRUE(at::allclose(f(x)[0], eager(x)[0], 1e-5, 1e-6));
}

TEST(CppApi, ACallThatIsNotCapturedSpoilsNoOther) {
  const at::NoGradGuard no_grad;
  const CompiledFunction f = compile(sparse_of_vectors);
  expect_equal(f, sparse_of_vectors, {at::ones({2, 3})});
  expect_equal(f, sparse_of_vectors, {at::ones({4})});
  EXPECT_EQ(f.stats().graphs, 1);
  EXPECT_EQ(f.stats().eager_calls, 1);
  for (int n = 2; n < 9; ++n) expect_equal(f, sparse_of_vectors, {at::ones({n, 3})});
  EXPECT_EQ(f.stats().graphs, 1);
  EXPECT_EQ(f.stats().eager_calls, 1);
}

TEST(CppApi, OtherKindsAreCapturedBehindACallThatIsNot) {
  const at::NoGradGuard no_grad;
  const CompiledFunction f = compile(sparse_of_vectors);
  expect_equal(f, sparse_of_vectors, {at::ones({4})});
  EXPECT_EQ(f.stats().eager_calls, 1);
  for (int n = 2; n < 6; ++n) expect_equal(f, sparse_of_vectors, {at::ones({n, 3})});
  EXPECT_EQ(f.stats().graphs, 1);
  EXPECT_EQ(f.stats().eager_calls, 1);
}

TEST(CppApi, CapturesInVainBecomeRare) {
  const at::NoGradGuard no_grad;
  const CompiledFunction f = compile(sparse_of_vectors);
  for (int call = 0; call < 100; ++call) f({at::ones({4})});
  EXPECT_EQ(f.stats().graphs, 0);
  EXPECT_EQ(f.stats().eager_calls, 100);
  EXPECT_GE(f.stats().eager_reasons.size(), 2u);
  EXPECT_LE(f.stats().eager_reasons.size(), 6u);
}

TEST(CppApi, EntriesAreBounded) {
  const at::NoGradGuard no_grad;
  CompileSettings settings;
  settings.dynamic = false;
  settings.entry_limit = 3;
  const CompiledFunction f = compile(scaled, settings);
  for (int n = 1; n <= 6; ++n) expect_equal(f, scaled, {at::ones({n, 3})});
  EXPECT_EQ(f.stats().graphs, 6);
  for (int n = 4; n <= 6; ++n) expect_equal(f, scaled, {at::ones({n, 3})});
  EXPECT_EQ(f.stats().graphs, 6);
  expect_equal(f, scaled, {at::ones({1, 3})});
  EXPECT_EQ(f.stats().graphs, 7);
}

TEST(CppApi, TheLeastRecentlyUsedEntryGoes) {
  const at::NoGradGuard no_grad;
  CompileSettings settings;
  settings.dynamic = false;
  settings.entry_limit = 2;
  const CompiledFunction f = compile(scaled, settings);
  const auto call = [&](int n) { expect_equal(f, scaled, {at::ones({n, 3})}); };
  call(1), call(2);
  for (int i = 0; i < 5; ++i) call(1);
  call(3);  // 2 goes
  call(1);
  EXPECT_EQ(f.stats().graphs, 3);
  call(2);
  EXPECT_EQ(f.stats().graphs, 4);
}

TEST(CppApi, EntriesAreGuardedOnEveryMode) {
  const at::NoGradGuard no_grad;
  const CompiledFunction f = compile(scaled);
  const Tensors x{at::rand({4, 3})};
  expect_equal(f, scaled, x);
  int64_t graphs = 1;
  const auto expect_another = [&] {
    EXPECT_EQ(f(x)[0].scalar_type(), scaled(x)[0].scalar_type());
    expect_equal(f, scaled, x);
    EXPECT_EQ(f.stats().graphs, ++graphs) << f.stats().recompiles.back();
  };
  {
    const c10::InferenceMode inference;
    expect_another();
  }
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  expect_another();
  at::globalContext().setDeterministicAlgorithms(false, false);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  expect_another();
  at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
  expect_another();
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::set_autocast_enabled(at::kCUDA, true);
  expect_another();
  at::autocast::set_autocast_enabled(at::kCUDA, false);
  at::autocast::clear_cache();
  expect_equal(f, scaled, x);
  EXPECT_EQ(f.stats().graphs, graphs);
}

TEST(CppApi, StateOfTheUserIsGuarded) {
  const at::NoGradGuard no_grad;
  uint64_t factor = 2;
  CompileSettings settings;
  settings.state = [&] { return factor; };
  const TensorFunction by_factor = [&](const Tensors& x) { return Tensors{x[0] * static_cast<double>(factor)}; };
  const CompiledFunction f = compile(by_factor, settings);
  for (const uint64_t now : {2, 3, 2, 3}) {
    factor = now;
    expect_equal(f, by_factor, {at::rand({5})});
  }
  EXPECT_EQ(f.stats().graphs, 2);
}

TEST(CppApi, TangentsRunEagerly) {
  const at::NoGradGuard no_grad;
  const CompiledFunction f = compile(scaled);
  const at::Tensor x = at::rand({4, 3});
  f({x});
  const auto level = torch::autograd::ForwardADLevel::get_next_idx();
  const at::Tensor dual = at::_make_dual(x, at::ones_like(x), static_cast<int64_t>(level));
  const at::Tensor got = f({dual})[0], expected = scaled({dual})[0];
  const auto tangent = [&](const at::Tensor& t) {
    return std::get<1>(at::_unpack_dual(t, static_cast<int64_t>(level)));
  };
  EXPECT_EQ(tangent(got).defined(), tangent(expected).defined());
  EXPECT_EQ(f.stats().eager_calls, 1);
  torch::autograd::ForwardADLevel::release_idx(level);
  f({x});
  EXPECT_EQ(f.stats().eager_calls, 1);
}

TEST(CppApi, FullgraphThrowsEveryTime) {
  const at::NoGradGuard no_grad;
  CompileSettings settings;
  settings.fullgraph = true;
  const CompiledFunction f = compile(sparse_of_vectors, settings);
  for (int call = 0; call < 3; ++call) EXPECT_THROW(f({at::ones({4})}), std::runtime_error);
  expect_equal(f, sparse_of_vectors, {at::ones({2, 3})});
}

TEST(CppApi, ThreadsShareTheEntries) {
  CompileSettings settings;
  settings.entry_limit = 2;
  settings.dynamic = false;
  const CompiledFunction f = compile(scaled, settings);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const at::NoGradGuard no_grad;
      for (int call = 0; call < 30; ++call) {
        const Tensors x{at::rand({1 + (call + t) % 3, 3})};
        wrong += !at::allclose(f(x)[0], scaled(x)[0], 1e-5, 1e-6);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cresset
