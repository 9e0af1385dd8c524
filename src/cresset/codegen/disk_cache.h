// Object files kept between runs, one a kernel, named by the hash of everything that decides their contents.
#pragma once

#include <llvm/Support/MemoryBuffer.h>

#include <memory>
#include <string>
#include <string_view>

#include "codegen/files.h"

namespace cresset::codegen {

class DiskCache {
 public:
  explicit DiskCache(std::string folder) : folder_(std::move(folder)) {}
  // nullptr when there is none, or when what is there is damaged.
  std::unique_ptr<llvm::MemoryBuffer> read(const std::string& hash) const;
  void write(const std::string& hash, std::string_view object) const;  // best effort; never half a file

 private:
  std::string path(const std::string& hash) const;
  std::string folder_;
};

}  // namespace cresset::codegen
