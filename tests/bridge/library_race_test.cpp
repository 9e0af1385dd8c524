// The library race: rounds, decisions, persistence.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "bridge/extern_kernels/autotune.h"
#include "bridge/scratch_folder.h"

namespace cresset::bridge {
namespace {

class Race : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("CRESSET_CACHE_DIR", folder_.path().c_str(), 1);
    setenv("CRESSET_NO_DISK_CACHE", "0", 1);
    setenv("CRESSET_NO_RACE", "0", 1);
    LibraryRace::get().reset();
  }
  void TearDown() override {
    LibraryRace::get().reset();
    unsetenv("CRESSET_CACHE_DIR");
  }
  // Runs the race to its end, candidate i taking seconds[i].
  static void run(RaceEntry& entry, const std::vector<double>& seconds) {
    for (RaceEntry::Pick pick = entry.pick(); pick.timed; pick = entry.pick())
      entry.record(pick.candidate, seconds[pick.candidate], 1);
  }
  ScratchFolder folder_;
};

TEST_F(Race, TheFastestWinsAndTheHopelessLeaveAfterTwoRounds) {
  RaceEntry& entry = LibraryRace::get().entry("a", {"aten", "other", "third"});
  std::vector<int> calls(3);
  for (RaceEntry::Pick pick = entry.pick(); pick.timed; pick = entry.pick()) {
    ++calls[pick.candidate];
    entry.record(pick.candidate, pick.candidate == 2 ? 0.5 : pick.candidate == 1 ? 0.6 : 1.0, 1);
  }
  EXPECT_EQ(calls, (std::vector<int>{2, 4, 4}));
  EXPECT_EQ(entry.winner(), 2);
}

TEST_F(Race, AFirstRoundThatBuildsAKernelDoesNotCount) {
  RaceEntry& entry = LibraryRace::get().entry("a", {"aten", "other"});
  int round = 0;
  for (RaceEntry::Pick pick = entry.pick(); pick.timed; pick = entry.pick())
    entry.record(pick.candidate, pick.candidate == 0 ? 1.0 : (round++ == 0 ? 50.0 : 0.5), 1);
  EXPECT_EQ(entry.winner(), 1);
}

TEST_F(Race, TheDefaultKeepsATie) {
  RaceEntry& entry = LibraryRace::get().entry("a", {"aten", "other"});
  run(entry, {1.0, 0.99});
  EXPECT_EQ(entry.winner(), 0);
}

TEST_F(Race, WorkMakesSizesComparable) {
  RaceEntry& entry = LibraryRace::get().entry("a", {"aten", "other"});
  for (RaceEntry::Pick pick = entry.pick(); pick.timed; pick = entry.pick()) {
    const double work = pick.candidate == 0 ? 1 : 10;
    entry.record(pick.candidate, pick.candidate == 0 ? 1.0 : 5.0, work);
  }
  EXPECT_EQ(entry.winner(), 1);
}

TEST_F(Race, DecisionsAreRememberedOnDisk) {
  run(LibraryRace::get().entry("a", {"aten", "other"}), {1.0, 0.1});
  run(LibraryRace::get().entry("b", {"aten", "other"}), {0.1, 1.0});
  LibraryRace::get().save();
  LibraryRace::get().reset();
  EXPECT_EQ(LibraryRace::get().entry("a", {"aten", "other"}).winner(), 1);
  EXPECT_EQ(LibraryRace::get().entry("b", {"aten", "other"}).winner(), 0);
  EXPECT_EQ(LibraryRace::get().entry("c", {"aten", "other"}).winner(), -1);
  // A candidate that is gone counts as undecided.
  EXPECT_EQ(LibraryRace::get().entry("a", {"aten", "third"}).winner(), -1);
}

TEST_F(Race, ABrokenFileIsNoError) {
  ASSERT_TRUE(write_file(folder_.path() + "/library_race.json", "{ not json"));
  EXPECT_EQ(LibraryRace::get().entry("a", {"aten", "other"}).winner(), -1);
}

TEST_F(Race, ACandidateThatRefusesIsNeverPickedAgain) {
  RaceEntry& entry = LibraryRace::get().entry("a", {"aten", "other"});
  while (true) {
    const RaceEntry::Pick pick = entry.pick();
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

TEST_F(Race, CanBeSwitchedOff) {
  setenv("CRESSET_NO_RACE", "1", 1);
  EXPECT_EQ(LibraryRace::get().entry("a", {"aten", "other"}).winner(), 0);
  unsetenv("CRESSET_NO_RACE");
}

TEST_F(Race, SizesAreRoundedToHalfSteps) {
  EXPECT_EQ(size_class(1), 0);
  EXPECT_EQ(size_class(512), size_class(540));
  EXPECT_NE(size_class(512), size_class(768));
}

}  // namespace
}  // namespace cresset::bridge
