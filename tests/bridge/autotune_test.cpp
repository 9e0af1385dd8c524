// The library race: rounds, decisions, persistence.
#include "bridge/extern_kernels/autotune.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "bridge/scratch_folder.h"

namespace cresset::bridge {
namespace {

class Autotune : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("CRESSET_CACHE_DIR", folder_.path().c_str(), 1);
    setenv("CRESSET_NO_DISK_CACHE", "0", 1);
    setenv("CRESSET_NO_AUTOTUNE", "0", 1);
    Autotuner::get().reset();
  }
  void TearDown() override {
    Autotuner::get().reset();
    unsetenv("CRESSET_CACHE_DIR");
  }
  // Runs the race to its end, candidate i taking seconds[i].
  static void run(AutotuneEntry& entry, const std::vector<double>& seconds) {
    for (AutotuneEntry::Pick pick = entry.pick(); pick.timed; pick = entry.pick())
      entry.record(pick.candidate, seconds[pick.candidate], 1);
  }
  ScratchFolder folder_;
};

TEST_F(Autotune, TheFastestWinsAndTheHopelessLeaveAfterTwoRounds) {
  AutotuneEntry& entry = Autotuner::get().entry("a", {"aten", "other", "third"});
  std::vector<int> calls(3);
  for (AutotuneEntry::Pick pick = entry.pick(); pick.timed; pick = entry.pick()) {
    ++calls[pick.candidate];
    entry.record(pick.candidate, pick.candidate == 2 ? 0.5 : pick.candidate == 1 ? 0.6 : 1.0, 1);
  }
  EXPECT_EQ(calls, (std::vector<int>{2, 4, 4}));
  EXPECT_EQ(entry.winner(), 2);
}

TEST_F(Autotune, AFirstRoundThatBuildsAKernelDoesNotCount) {
  AutotuneEntry& entry = Autotuner::get().entry("a", {"aten", "other"});
  int round = 0;
  for (AutotuneEntry::Pick pick = entry.pick(); pick.timed; pick = entry.pick())
    entry.record(pick.candidate, pick.candidate == 0 ? 1.0 : (round++ == 0 ? 50.0 : 0.5), 1);
  EXPECT_EQ(entry.winner(), 1);
}

TEST_F(Autotune, TheDefaultKeepsATie) {
  AutotuneEntry& entry = Autotuner::get().entry("a", {"aten", "other"});
  run(entry, {1.0, 0.99});
  EXPECT_EQ(entry.winner(), 0);
}

TEST_F(Autotune, WorkMakesSizesComparable) {
  AutotuneEntry& entry = Autotuner::get().entry("a", {"aten", "other"});
  for (AutotuneEntry::Pick pick = entry.pick(); pick.timed; pick = entry.pick()) {
    const double work = pick.candidate == 0 ? 1 : 10;
    entry.record(pick.candidate, pick.candidate == 0 ? 1.0 : 5.0, work);
  }
  EXPECT_EQ(entry.winner(), 1);
}

TEST_F(Autotune, DecisionsAreRememberedOnDisk) {
  run(Autotuner::get().entry("a", {"aten", "other"}), {1.0, 0.1});
  run(Autotuner::get().entry("b", {"aten", "other"}), {0.1, 1.0});
  Autotuner::get().save();
  Autotuner::get().reset();
  EXPECT_EQ(Autotuner::get().entry("a", {"aten", "other"}).winner(), 1);
  EXPECT_EQ(Autotuner::get().entry("b", {"aten", "other"}).winner(), 0);
  EXPECT_EQ(Autotuner::get().entry("c", {"aten", "other"}).winner(), -1);
  // A candidate that is gone counts as undecided.
  EXPECT_EQ(Autotuner::get().entry("a", {"aten", "third"}).winner(), -1);
}

TEST_F(Autotune, ABrokenFileIsNoError) {
  ASSERT_TRUE(write_file(folder_.path() + "/autotune.json", "{ not json"));
  EXPECT_EQ(Autotuner::get().entry("a", {"aten", "other"}).winner(), -1);
}

TEST_F(Autotune, ACandidateThatRefusesIsNeverPickedAgain) {
  AutotuneEntry& entry = Autotuner::get().entry("a", {"aten", "other"});
  while (true) {
    const AutotuneEntry::Pick pick = entry.pick();
    if (!pick.timed) break;
    if (pick.candidate == 1) {
      entry.abandon(1);
      entry.disqualify(1);
    } else {
      entry.record(0, 1.0, 1);
    }
  }
  EXPECT_EQ(entry.winner(), 0);
}

TEST_F(Autotune, CanBeSwitchedOff) {
  setenv("CRESSET_NO_AUTOTUNE", "1", 1);
  EXPECT_EQ(Autotuner::get().entry("a", {"aten", "other"}).winner(), 0);
  unsetenv("CRESSET_NO_AUTOTUNE");
}

TEST_F(Autotune, SizesAreRoundedToHalfSteps) {
  EXPECT_EQ(size_class(1), 0);
  EXPECT_EQ(size_class(512), size_class(540));
  EXPECT_NE(size_class(512), size_class(768));
}

}  // namespace
}  // namespace cresset::bridge
