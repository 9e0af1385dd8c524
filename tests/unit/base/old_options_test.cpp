#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/options.h"

namespace cresset {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OldOptions : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* name :
         {"CRESSET_NO_RACE", "CRESSET_NO_AUTOTUNE", "CRESSET_ENTRY_LIMIT", "CRESSET_CACHE_ENTRY_LIMIT"})
      unsetenv(name);
  }
};

TEST_F(OldOptions, AnOldNameWorksAndIsListed) {
  EXPECT_THAT(deprecated_options(), IsEmpty());
  setenv("CRESSET_NO_RACE", "1", 1);
  setenv("CRESSET_ENTRY_LIMIT", "3", 1);
  EXPECT_TRUE(option_flag(Option::NO_AUTOTUNE));
  EXPECT_EQ(option_int(Option::CACHE_ENTRY_LIMIT), 3);
  EXPECT_THAT(deprecated_options(), ElementsAre("CRESSET_NO_RACE is deprecated: use CRESSET_NO_AUTOTUNE",
                                                "CRESSET_ENTRY_LIMIT is deprecated: use CRESSET_CACHE_ENTRY_LIMIT"));
}

TEST_F(OldOptions, ThePresentNameComesFirst) {
  setenv("CRESSET_ENTRY_LIMIT", "3", 1);
  setenv("CRESSET_CACHE_ENTRY_LIMIT", "5", 1);
  EXPECT_EQ(option_int(Option::CACHE_ENTRY_LIMIT), 5);
}

TEST_F(OldOptions, AWrongValueIsReportedUnderTheNameInUse) {
  setenv("CRESSET_ENTRY_LIMIT", "x", 1);
  EXPECT_THAT(wrong_options(), ElementsAre("CRESSET_ENTRY_LIMIT='x': expected a whole number of at least 1"));
  EXPECT_EQ(option_int(Option::CACHE_ENTRY_LIMIT), 64);
}

}  // namespace
}  // namespace cresset
