// Ranges that are run by several threads: each element once, and really by several.
#include "bridge/device/cpu/thread_pool.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace cresset::bridge {
namespace {

class ThreadPool : public testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(3); }
  void TearDown() override { at::set_num_threads(threads_); }

  // How many threads took part in covering [0, count) once.
  static size_t threads_of(int64_t count, int64_t grain) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
    std::set<std::thread::id> threads;
    std::mutex mutex;
    run_on_ranges(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    });
    for (const std::atomic<int>& times : seen) EXPECT_EQ(times, 1);
    return threads.size();
  }

 private:
  const int threads_ = at::get_num_threads();
};

TEST_F(ThreadPool, RangesAreRunBySeveralThreads) {
  if (!threads_available()) GTEST_SKIP() << "no OpenMP runtime";
  EXPECT_EQ(threads_of(100, 1), 3U);
  EXPECT_EQ(threads_of(7, 3), 2U);
  EXPECT_EQ(threads_of(2, 1), 2U);
}

TEST_F(ThreadPool, RangesUnderTheGrainAreOneThreads) {
  EXPECT_EQ(threads_of(0, 1), 0U);
  EXPECT_EQ(threads_of(1, 1), 1U);
  EXPECT_EQ(threads_of(100, 60), 1U);
  at::set_num_threads(1);
  EXPECT_EQ(threads_of(100, 1), 1U);
}

}  // namespace
}  // namespace cresset::bridge
