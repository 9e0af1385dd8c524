#include "base/files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace cresset {
namespace {

class Files : public ::testing::Test {
 protected:
  Files() : folder_("/tmp/cresset_files_" + std::to_string(::getpid())) {}
  ~Files() override { EXPECT_EQ(std::system(("rm -rf " + folder_).c_str()), 0); }
  const std::string folder_;
};

TEST(Paths, Parents) {
  EXPECT_EQ(parent_folder("/a/b/c"), "/a/b");
  EXPECT_EQ(parent_folder("a/b"), "a");
  EXPECT_EQ(parent_folder("/a"), "/");
  EXPECT_EQ(parent_folder("a"), "");
}

TEST_F(Files, AreWrittenWholeInFoldersThatAreMade) {
  const std::string path = folder_ + "/deep/er/file", large(300'000, 'x');
  EXPECT_FALSE(read_file(path));
  EXPECT_TRUE(write_file(path, std::string("a\0b", 3)));
  EXPECT_EQ(read_file(path), std::string("a\0b", 3));
  EXPECT_TRUE(write_file(path, large));
  EXPECT_EQ(read_file(path), large);
  EXPECT_TRUE(is_folder(folder_ + "/deep"));
  EXPECT_FALSE(is_folder(path));
}

TEST_F(Files, WhatCannotBeWrittenIsLeftAsItWas) {
  const std::string path = folder_ + "/file";
  EXPECT_TRUE(write_file(path, "before"));
  EXPECT_FALSE(write_file(path + "/below", "x"));
  EXPECT_FALSE(make_folders(path + "/below"));
  EXPECT_EQ(read_file(path), "before");
}

TEST(CacheFolder, VariablesInOrder) {
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  unsetenv("CRESSET_CACHE_DIR");
  EXPECT_EQ(cache_folder(), "/somewhere/cresset");
  setenv("CRESSET_CACHE_DIR", "/here", 1);
  EXPECT_EQ(cache_folder(), "/here");
  unsetenv("CRESSET_CACHE_DIR");
  unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace cresset
