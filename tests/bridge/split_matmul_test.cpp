// Products whose library asks for memory where the plan has none to spare.
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "bridge/extern_kernels/autotune.h"
#include "bridge/program_builder.h"

namespace cresset::bridge {
namespace {

using runtime::Home;
using runtime::TensorId;

// The greatest sum of bytes that this thread's allocations and arenas held, as torch's profiler is told.
class HeldBytes final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override {
    held_ += bytes;
    most = std::max(most, held_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t most = 0;

 private:
  int64_t held_ = 0;
};

// Races of products of these sizes end: oneDNN's wins. False when it takes no part.
bool let_onednn_win(const std::string& beginning) {
  const std::string report = Autotuner::get().report();
  const size_t at = report.find(beginning);
  if (at == std::string::npos) return false;
  const std::string key = report.substr(at, report.find(':', at) - at);
  AutotuneEntry& entry = Autotuner::get().entry(key, {"aten", "onednn_matmul", "onednn_linear"});
  for (int round = 0; round < 20; ++round)
    for (const int candidate : {2, 1, 0}) entry.record(candidate, 1, candidate == 2 ? 1e15 : 1);
  return entry.winner() == 2;
}

int64_t run_and_compare(Executor& executor, const at::Tensor& x, const at::Tensor& expected) {
  const auto held = std::make_shared<HeldBytes>();
  at::Tensor got;
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, held);
    got = executor.run({x}, {})[0];
  }
  EXPECT_TRUE(at::allclose(got, expected, 1e-3, 1e-3));
  return held->most;
}

class SplitMatmulTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("CRESSET_NO_DISK_CACHE", "1", 1);
    setenv("CRESSET_NO_AUTOTUNE", "0", 1);
    Autotuner::get().reset();
  }
  void TearDown() override {
    unsetenv("CRESSET_NO_DISK_CACHE");
    unsetenv("CRESSET_NO_AUTOTUNE");
    Autotuner::get().reset();
  }
};

TEST_F(SplitMatmulTest, AProductKeepsToThePlan) {
  constexpr int64_t m = 1000, k = 1536, n = 512;
  const at::Tensor x = at::randn({m, k}), w = at::randn({n, k}) * 0.1, bias = at::randn({n});
  ProgramBuilder b;
  const auto slot = [&](Home home, int64_t columns, uint32_t first, uint32_t last) {
    const TensorId id = b.slot(home, {b.c(m), b.c(columns)});
    b.program.tensors[id.index].first_step = first;
    b.program.tensors[id.index].last_step = last;
    return id;
  };
  const TensorId in = b.input({b.c(m), b.c(k)});
  const TensorId weight = b.constant(w.t()), row = b.constant(bias);
  const TensorId doubled = slot(Home::Arena, k, 0, 1), out = slot(Home::Fresh, n, 1, UINT32_MAX - 1);
  b.launch(double_kernel, {in, doubled}, b.c(m * k));
  b.call("aten::addmm", {row, doubled, weight, b.ref(1), b.ref(1)}, {out});
  const auto executor = b.build({out});
  const at::Tensor expected = at::addmm(bias, x * 2, w.t());
  run_and_compare(*executor, x, expected);
  if (!let_onednn_win("addmm f b0 m20 k21 n18 ntn")) GTEST_SKIP() << "this torch has not got oneDNN's product";
  constexpr int64_t planned = m * (k + n) * 4;
  if (run_and_compare(*executor, x, expected) <= planned) GTEST_SKIP() << "the library needs no more than the plan";
  for (int call = 0; call < 3; ++call) EXPECT_EQ(run_and_compare(*executor, x, expected), planned);
}

// What a convolution asks for itself (its weight in another order) is planned for once it is known, where that is less
// than the arena and the weight beside it.
TEST_F(SplitMatmulTest, AConvolutionGetsAGapForItsWeight) {
  setenv("CRESSET_NO_AUTOTUNE", "1", 1);
  constexpr int64_t channels = 64, filters = 1024;
  ProgramBuilder b;
  const auto slot = [&](Home home, std::vector<int64_t> sizes, uint32_t first, uint32_t last,
                        DType dtype = DType::F32) {
    std::vector<sym::ExprId> extents;
    for (const int64_t size : sizes) extents.push_back(b.c(size));
    const TensorId id = b.slot(home, extents, {}, dtype);
    b.program.tensors[id.index].first_step = first;
    b.program.tensors[id.index].last_step = last;
    return id;
  };
  const auto pair = [&](int64_t value) { return b.refs({value, value}); };
  const std::vector<int64_t> image{2, channels, 64, 64}, small{2, channels, 4, 4};
  const at::Tensor x = at::randn(image), w = at::randn({filters, channels, 3, 3}) * 0.1;
  const TensorId in = b.input({b.c(2), b.c(channels), b.c(64), b.c(64)}), weight = b.constant(w);
  const TensorId doubled = slot(Home::Arena, image, 0, 1), again = slot(Home::Arena, image, 1, 2);
  const TensorId pooled = slot(Home::Arena, small, 2, 3), positions = slot(Home::Arena, small, 2, 2, DType::I64);
  const TensorId out = slot(Home::Fresh, {2, filters, 4, 4}, 3, UINT32_MAX - 1);
  b.launch(double_kernel, {in, doubled}, b.c(x.numel()));
  b.launch(double_kernel, {doubled, again}, b.c(x.numel()));
  b.call("aten::max_pool2d_with_indices", {again, pair(16), pair(16), pair(0), pair(1), false}, {pooled, positions});
  b.call("aten::convolution", {pooled, weight, graph::None{}, pair(1), pair(1), pair(1), false, pair(0), b.ref(1)},
         {out});
  const auto executor = b.build({out});
  const at::Tensor expected = at::conv2d(at::max_pool2d(x * 4, 16), w, {}, 1, 1);
  const int64_t first = run_and_compare(*executor, x, expected);
  const int64_t arena = 2 * x.numel() * 4, weight_bytes = w.numel() * 4;
  for (int call = 0; call < 3; ++call) {
    const int64_t later = run_and_compare(*executor, x, expected);
    EXPECT_LE(later, first);
    if (first > arena + weight_bytes) EXPECT_LT(later, arena + weight_bytes) << "two copies of the weight, planned";
  }
}

}  // namespace
}  // namespace cresset::bridge
