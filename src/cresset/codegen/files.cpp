#include "codegen/files.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/Support/Path.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <filesystem>
#include <fstream>

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

// nullopt: there is none, or not all of it could be read.
static std::optional<std::string> read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) return std::nullopt;
  std::string bytes(static_cast<size_t>(size), '\0');
  file.seekg(0);
  file.read(bytes.data(), size);
  if (file.gcount() != size) return std::nullopt;
  return bytes;
}

// The file is the contents followed by their hash.
std::optional<std::string> read_checked(const std::string& path) {
  std::optional<std::string> whole = read_whole(path);
  if (!whole) return std::nullopt;
  std::string& bytes = *whole;
  constexpr size_t kHashLength = 32;
  if (bytes.size() <= kHashLength) return std::nullopt;
  const std::string_view contents = std::string_view(bytes).substr(0, bytes.size() - kHashLength);
  if (content_hash(contents) != std::string_view(bytes).substr(contents.size())) return std::nullopt;
  bytes.resize(contents.size());
  return whole;
}

void write_checked(const std::string& path, std::string_view bytes) {
  static std::atomic<int> serial = 0;
  const std::filesystem::path target(path);
  std::error_code ignored;
  std::filesystem::create_directories(target.parent_path(), ignored);
  const std::string temporary =
      fmt::format("{}/.{}.{}.{}", target.parent_path().string(), target.filename().string(), getpid(), serial++);
  bool whole = false;
  {
    std::ofstream file(temporary, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file << content_hash(bytes);
    file.flush();
    whole = file.good();
  }
  if (whole) std::filesystem::rename(temporary, target, ignored);
  if (!whole || ignored) std::filesystem::remove(temporary, ignored);
}

}  // namespace cresset::codegen
