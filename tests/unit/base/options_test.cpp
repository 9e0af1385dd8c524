#include "base/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/log.h"

namespace cresset {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Options : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  void set(const std::string& name, const char* value) {
    setenv(name.c_str(), value, 1);
    set_.push_back(name);
  }

 private:
  std::vector<std::string> set_;
};

TEST_F(Options, WrongValuesAreListedTogetherAndReadAsTheDefault) {
  set("CRESSET_VECTOR_BITS", "300");
  set("CRESSET_CACHE_ENTRY_LIMIT", "x");
  set("CRESSET_VERIFY", "yes");
  set("CRESSET_LOG", "graph,grahp");
  EXPECT_THAT(wrong_options(), ElementsAre(HasSubstr("CRESSET_LOG='graph,grahp': expected some of graph, kernels"),
                                           "CRESSET_VERIFY='yes': expected 1, true, on, 0, false, off",
                                           "CRESSET_VECTOR_BITS='300': expected 0, 128, 256, 512",
                                           "CRESSET_CACHE_ENTRY_LIMIT='x': expected a whole number of at least 1"));
  EXPECT_EQ(option_int(Option::VECTOR_BITS), 0);
  EXPECT_EQ(option_int(Option::CACHE_ENTRY_LIMIT), 64);
  EXPECT_FALSE(option_flag(Option::VERIFY));
  EXPECT_EQ(option(Option::LOG), "");
}

TEST_F(Options, NumbersAreReadWhole) {
  for (const char* wrong : {"0", "-1", "64x", " 64", "1e3", "99999999999999999999"}) {
    set("CRESSET_CACHE_ENTRY_LIMIT", wrong);
    EXPECT_EQ(wrong_options().size(), 1u) << wrong;
  }
  set("CRESSET_CACHE_ENTRY_LIMIT", "3");
  EXPECT_THAT(wrong_options(), IsEmpty());
  EXPECT_EQ(option_int(Option::CACHE_ENTRY_LIMIT), 3);
}

TEST_F(Options, RightAndEmptyValuesPass) {
  for (const auto& [name, value] : {std::pair{"CRESSET_LOG", "graph,,kernels"},
                                    {"CRESSET_VERIFY", "on"},
                                    {"CRESSET_VALIDATE", ""},
                                    {"CRESSET_VECTOR_BITS", "256"},
                                    {"CRESSET_NO_AUTOTUNE", "false"}})
    set(name, value);
  EXPECT_THAT(wrong_options(), IsEmpty());
  EXPECT_TRUE(option_flag(Option::VERIFY));
  EXPECT_FALSE(option_flag(Option::VALIDATE));
  EXPECT_EQ(option_int(Option::VECTOR_BITS), 256);
}

TEST_F(Options, AFolderBelowAFileCannotBeWritten) {
  set("CRESSET_CACHE_DIR", "/proc/self/status/cache");
  EXPECT_THAT(cache_folder_problem(), HasSubstr("nothing can be written in /proc/self/status"));
  set("CRESSET_NO_DISK_CACHE", "1");
  EXPECT_EQ(cache_folder_problem(), "");
}

}  // namespace
}  // namespace cresset
