#include "codegen/disk_cache.h"

namespace cresset::codegen {

std::string DiskCache::path(const std::string& hash) const { return folder_ + "/" + hash + ".o"; }

std::unique_ptr<llvm::MemoryBuffer> DiskCache::read(const std::string& hash) const {
  if (folder_.empty()) return nullptr;
  const std::optional<std::string> object = read_checked(path(hash));
  if (!object) return nullptr;
  return llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object->data(), object->size()), hash);
}

void DiskCache::write(const std::string& hash, std::string_view object) const {
  if (!folder_.empty()) write_checked(path(hash), object);
}

}  // namespace cresset::codegen
