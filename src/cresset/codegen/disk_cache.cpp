#include "codegen/disk_cache.h"

namespace cresset::codegen {
namespace {

std::string_view extension(runtime::KernelImage::Format format) {
  switch (format) {
    case runtime::KernelImage::Format::Object:
      return ".o";
    case runtime::KernelImage::Format::Cubin:
      return ".cubin";
    case runtime::KernelImage::Format::Ptx:
      return ".ptx";
  }
  return "";
}

}  // namespace

std::string DiskCache::path(const std::string& hash) const {
  return folder_ + "/" + hash + std::string(extension(format_));
}

std::optional<std::string> DiskCache::read(const std::string& hash) const {
  return folder_.empty() ? std::nullopt : read_checked(path(hash));
}

void DiskCache::write(const std::string& hash, std::string_view image) const {
  if (!folder_.empty()) write_checked(path(hash), image);
}

}  // namespace cresset::codegen
