// Machine code kept between runs, one file a kernel, named by the hash of everything that decides its contents.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "codegen/files.h"
#include "runtime/compiled_kernel.h"

namespace cresset::codegen {

class DiskCache {
 public:
  // An empty folder keeps nothing.
  DiskCache(std::string folder, runtime::KernelImage::Format format) : folder_(std::move(folder)), format_(format) {}
  // The bytes of an image. nullopt when there is none, or when what is there is damaged.
  std::optional<std::string> read(const std::string& hash) const;
  void write(const std::string& hash, std::string_view image) const;  // best effort; never half a file

 private:
  std::string path(const std::string& hash) const;
  std::string folder_;
  runtime::KernelImage::Format format_;
};

}  // namespace cresset::codegen
