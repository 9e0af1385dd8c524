#include "codegen/files.h"

#define XXH_INLINE_ALL
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <mutex>
#include <set>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"

namespace cresset::codegen {
namespace {

struct Used {
  std::mutex mutex;
  std::set<std::string> paths;
  int64_t unbounded_bytes = -1;  // written since the folder was bounded; -1: it never was
};

Used& used() {
  static auto* const instance = new Used;
  return *instance;
}

struct KnownFile {
  std::string path;
  int64_t bytes = 0;
  timespec used{};
};

void list_files(const std::string& folder, std::vector<KnownFile>& out) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  if (open == nullptr) return;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string name = entry->d_name;
    struct stat found{};
    const std::string path = folder + "/" + name;
    if (name == "." || name == ".." || ::lstat(path.c_str(), &found) != 0) continue;
    if (S_ISDIR(found.st_mode)) list_files(path, out);
    if (S_ISREG(found.st_mode)) out.push_back({path, found.st_size, found.st_mtim});
  }
}

// The time of the last change stands for the time of the last use. It is set again at most once in a minute.
void make_recent(const std::string& path) {
  constexpr time_t kMinute = 60;
  struct stat found{};
  if (::stat(path.c_str(), &found) == 0 && ::time(nullptr) - found.st_mtim.tv_sec >= kMinute)
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

// Bounds the folder at the first write of a process, then whenever a twentieth of the limit was written.
void bound_now_and_then(size_t bytes) {
  const std::string folder = default_cache_folder();
  const int64_t limit = option_int(Option::CACHE_SIZE) << 20;
  {
    const std::lock_guard lock(used().mutex);
    int64_t& written = used().unbounded_bytes;
    const bool due = written < 0 || (written += static_cast<int64_t>(bytes)) > limit / 20;
    if (!due) return;
    written = 0;
  }
  if (folder.empty()) return;
  if (const int64_t count = bound_folder(folder, limit); count > 0)
    CRESSET_LOG(Cache, fmt::format("{} files used longest ago are deleted (CRESSET_CACHE_SIZE)", count));
}

}  // namespace

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
  make_recent(path);
  note_used(path);
  return whole;
}

void write_checked(const std::string& path, std::string_view bytes) {
  if (!write_file(path, std::string(bytes) + content_hash(bytes))) return;
  note_used(path);
  bound_now_and_then(bytes.size());
}

void note_used(const std::string& path) {
  const std::lock_guard lock(used().mutex);
  used().paths.insert(path);
}

std::vector<std::string> used_files() {
  const std::lock_guard lock(used().mutex);
  return {used().paths.begin(), used().paths.end()};
}

int64_t bound_folder(const std::string& folder, int64_t limit) {
  std::vector<KnownFile> files;
  list_files(folder, files);
  int64_t bytes = 0, deleted = 0;
  for (const KnownFile& file : files) bytes += file.bytes;
  if (bytes <= limit) return 0;
  std::sort(files.begin(), files.end(), [](const KnownFile& a, const KnownFile& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  const int64_t enough = limit - limit / 10;  // room for the next writes
  for (const KnownFile& file : files) {
    if (bytes <= enough) break;
    if (::unlink(file.path.c_str()) != 0) continue;
    bytes -= file.bytes;
    ++deleted;
  }
  return deleted;
}

}  // namespace cresset::codegen
