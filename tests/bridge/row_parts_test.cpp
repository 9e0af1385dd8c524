// Products whose library asks for memory where the plan has none to spare.
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "bridge/library_race.h"
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
  const std::string report = LibraryRace::get().report();
  const size_t at = report.find(beginning);
  if (at == std::string::npos) return false;
  const std::string key = report.substr(at, report.find(':', at) - at);
  RaceEntry& entry = LibraryRace::get().entry(key, {"aten", "onednn_matmul", "onednn_linear"});
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

class RowPartsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("CRESSET_NO_DISK_CACHE", "1", 1);
    setenv("CRESSET_NO_RACE", "0", 1);
    LibraryRace::get().reset();
  }
  void TearDown() override {
    unsetenv("CRESSET_NO_DISK_CACHE");
    LibraryRace::get().reset();
  }
};

TEST_F(RowPartsTest, AProductKeepsToThePlan) {
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

}  // namespace
}  // namespace cresset::bridge
