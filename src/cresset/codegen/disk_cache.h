// Machine code kept between runs: a file for each kernel, named by the hash of all inputs which determine its contents.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "codegen/files.h"
#include "runtime/compiled_kernel.h"

namespace cresset::codegen {

class DiskCache {
 public:
  // An empty folder disables the cache.
  DiskCache(std::string folder, runtime::KernelImage::Format format) : folder_(std::move(folder)), format_(format) {}
  // Returns the bytes of an image, or nullopt when the file is absent or damaged.
  std::optional<std::string> read(const std::string& hash) const;
  void write(const std::string& hash, std::string_view image) const;  // best effort; never writes half a file

 private:
  std::string path(const std::string& hash) const;
  std::string folder_;
  runtime::KernelImage::Format format_;
};

}  // namespace cresset::codegen
