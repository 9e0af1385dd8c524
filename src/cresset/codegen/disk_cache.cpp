#include "codegen/disk_cache.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/Support/Path.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/options.h"

namespace cresset::codegen {

std::string content_hash(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string default_cache_folder() {
  if (std::string folder = option(Option::CACHE_DIR); !folder.empty()) return folder;
  llvm::SmallString<128> folder;
  if (!llvm::sys::path::cache_directory(folder)) return "";
  return (folder + "/cresset").str();
}

std::string DiskCache::path(const std::string& hash) const { return folder_ + "/" + hash + ".o"; }

// The file is the object followed by the hash of the object.
std::unique_ptr<llvm::MemoryBuffer> DiskCache::read(const std::string& hash) const {
  if (folder_.empty()) return nullptr;
  std::ifstream file(path(hash), std::ios::binary);
  if (!file) return nullptr;
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  constexpr size_t kHashLength = 32;
  if (bytes.size() <= kHashLength) return nullptr;
  const std::string_view object = std::string_view(bytes).substr(0, bytes.size() - kHashLength);
  if (content_hash(object) != std::string_view(bytes).substr(object.size())) return nullptr;
  return llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), hash);
}

void DiskCache::write(const std::string& hash, std::string_view object) const {
  if (folder_.empty()) return;
  static std::atomic<int> serial = 0;
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  const std::string temporary = fmt::format("{}/.{}.{}.{}", folder_, hash, getpid(), serial++);
  bool whole = false;
  {
    std::ofstream file(temporary, std::ios::binary);
    file.write(object.data(), static_cast<std::streamsize>(object.size()));
    file << content_hash(object);
    file.flush();
    whole = file.good();
  }
  if (whole) std::filesystem::rename(temporary, path(hash), ignored);
  if (!whole || ignored) std::filesystem::remove(temporary, ignored);
}

}  // namespace cresset::codegen
