// A folder of a test's own. Not by std::filesystem, whose functions libtorch exports (base/files.h).
#pragma once

#include <ftw.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace cresset::bridge {

class ScratchFolder {
 public:
  ScratchFolder() {
    const char* const parent = getenv("TMPDIR");
    path_ = std::string(parent != nullptr ? parent : "/tmp") + "/cresset_test_XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~ScratchFolder() {
    constexpr int kOpenFiles = 16;
    const auto remove_one = [](const char* path, const struct stat*, int, struct FTW*) { return std::remove(path); };
    if (!path_.empty()) nftw(path_.c_str(), remove_one, kOpenFiles, FTW_DEPTH | FTW_PHYS);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace cresset::bridge
