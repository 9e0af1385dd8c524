#include "codegen/files.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include "base/files.h"

namespace cresset::codegen {

std::string content_hash(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string default_cache_folder() { return cache_folder(); }

// The file is the contents followed by their hash.
std::optional<std::string> read_checked(const std::string& path) {
  std::optional<std::string> whole = read_file(path);
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
  write_file(path, std::string(bytes) + content_hash(bytes));
}

}  // namespace cresset::codegen
