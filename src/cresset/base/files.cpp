#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/options.h"

namespace cresset {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  const int fd_;
};

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool write_new(const std::string& path, std::string_view bytes) {
  const Descriptor file(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644));
  return file.valid() && write_all(file.get(), bytes);
}

}  // namespace

std::string parent_folder(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return "";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool is_folder(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

bool make_folders(const std::string& path) {
  if (path.empty() || is_folder(path)) return true;
  if (!make_folders(parent_folder(path))) return false;
  return ::mkdir(path.c_str(), 0777) == 0 || is_folder(path);
}

std::optional<std::string> read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  std::string bytes;
  for (;;) {
    constexpr size_t kPart = 1 << 16;
    const size_t before = bytes.size();
    bytes.resize(before + kPart);
    const ssize_t got = ::read(file.get(), bytes.data() + before, kPart);
    if (got < 0 && errno != EINTR) return std::nullopt;
    bytes.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return bytes;
  }
}

bool write_file(const std::string& path, std::string_view bytes) {
  static std::atomic<int> serial = 0;
  if (!make_folders(parent_folder(path))) return false;
  const size_t name = path.find_last_of('/') + 1;  // 0 for a name without a folder
  const std::string temporary =
      fmt::format("{}.{}.{}.{}", path.substr(0, name), path.substr(name), ::getpid(), serial++);
  if (write_new(temporary, bytes) && ::rename(temporary.c_str(), path.c_str()) == 0) return true;
  ::unlink(temporary.c_str());
  return false;
}

std::string cache_folder() {
  if (std::string folder = option(Option::CACHE_DIR); !folder.empty()) return folder;
  for (const auto& [variable, below] : {std::pair{"XDG_CACHE_HOME", "/cresset"}, {"HOME", "/.cache/cresset"}}) {
    const char* base = std::getenv(variable);
    if (base != nullptr && *base == '/') return std::string(base) + below;
  }
  return "";
}

}  // namespace cresset
