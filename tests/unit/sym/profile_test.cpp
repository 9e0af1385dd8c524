#include "sym/profile.h"

#include <gmock/gmock.h>

namespace cresset::sym::testing {
namespace {

TEST(Profile, ASizeVariesFromItsSecondValueOn) {
  Profile p;
  EXPECT_FALSE(p.observe("x.size(0)", 8));
  EXPECT_FALSE(p.observe("x.size(0)", 8));
  EXPECT_FALSE(p.wants_symbol("x.size(0)"));
  EXPECT_TRUE(p.observe("x.size(0)", 9));
  EXPECT_FALSE(p.observe("x.size(0)", 10)) << "no news";
  EXPECT_TRUE(p.wants_symbol("x.size(0)"));
  EXPECT_FALSE(p.wants_symbol("y.size(0)"));
  EXPECT_EQ(p.typical("x.size(0)"), 10);
}

TEST(Profile, WhatWasPinnedIsNotTriedAgain) {
  Profile p;
  p.observe("n", 1), p.observe("n", 2);
  p.note_specialized("n");
  EXPECT_FALSE(p.wants_symbol("n"));
  p.observe("n", 3), p.observe("n", 4);
  EXPECT_TRUE(p.wants_symbol("n")) << "too many sizes for a cache entry each";
}

TEST(Profile, TextRoundTrip) {
  Profile p;
  for (const int64_t n : {1, 2, 3, 4, 5, 6}) p.observe("args[0].size(0)", n);
  p.observe("kwargs['mask'][0]", -1);
  p.note_specialized("args[0].size(0)");
  EXPECT_EQ(Profile::from_text(p.to_text()), p);
  EXPECT_EQ(p.records().at("args[0].size(0)").sizes, (std::vector<int64_t>{3, 4, 5, 6}));
}

TEST(Profile, DamagedTextLosesOnlyWhatIsDamaged) {
  const Profile p = Profile::from_text("cresset sizes 1\nx\tvaried\t3,4\ngarbage\ny\tvaried\t3,z\nz\tbad\t1\n\t\t\n");
  EXPECT_EQ(p.records().size(), 1u);
  EXPECT_TRUE(p.wants_symbol("x"));
  EXPECT_TRUE(Profile::from_text("another format\nx\tvaried\t3\n").empty());
  EXPECT_TRUE(Profile::from_text("").empty());
}

TEST(Profile, ProcessesMerge) {
  Profile a, b, ab, ba;
  a.observe("x", 8), b.observe("x", 9);  // each saw one size
  a.observe("y", 4), b.observe("y", 4);
  b.observe("z", 1), b.observe("z", 2);
  ab = a, ab.merge(b);
  ba = b, ba.merge(a);
  for (const Profile& p : {ab, ba}) {
    EXPECT_TRUE(p.wants_symbol("x"));
    EXPECT_FALSE(p.wants_symbol("y"));
    EXPECT_TRUE(p.wants_symbol("z"));
  }
  Profile again = ab;
  again.merge(ab);
  EXPECT_EQ(again, ab) << "merging what is known changes nothing";
}

}  // namespace
}  // namespace cresset::sym::testing
