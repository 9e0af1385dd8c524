#include "codegen/nvptx/assembler.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "base/files.h"

namespace cresset::codegen::nvptx {
namespace {

Fallback failure(const std::string& why) { return {FallbackReason::CodegenFailed, "assembling a kernel: " + why, ""}; }

// The names that all versions export.
class NvJitLink final : public Assembler {
 public:
  static std::shared_ptr<const NvJitLink> open(const std::string& path) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    auto out = std::make_shared<NvJitLink>();
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    const bool whole = find(out->create_, "nvJitLinkCreate") && find(out->add_data_, "nvJitLinkAddData") &&
                       find(out->complete_, "nvJitLinkComplete") &&
                       find(out->cubin_size_, "nvJitLinkGetLinkedCubinSize") &&
                       find(out->cubin_, "nvJitLinkGetLinkedCubin") && find(out->destroy_, "nvJitLinkDestroy") &&
                       find(out->log_size_, "nvJitLinkGetErrorLogSize") && find(out->log_, "nvJitLinkGetErrorLog") &&
                       find(out->version_, "nvJitLinkVersion");
    return whole ? out : nullptr;
  }

  Result<std::string> assemble(const std::string& ptx, int chip) const override {
    const std::string arch = fmt::format("-arch=sm_{}", chip);
    const char* options[] = {arch.c_str(), "-O3"};
    void* handle = nullptr;
    if (create_(&handle, 2, options) != 0) return failure("nvJitLink does not start for " + arch);
    constexpr int kPtx = 2;  // NVJITLINK_INPUT_PTX
    Result<std::string> out = std::string();
    size_t bytes = 0;
    if (add_data_(handle, kPtx, ptx.data(), ptx.size(), "kernel") != 0 || complete_(handle) != 0 ||
        cubin_size_(handle, &bytes) != 0) {
      out = failure(error_log(handle));
    } else {
      out->resize(bytes);
      if (cubin_(handle, out->data()) != 0) out = failure("nvJitLink gives no code");
    }
    destroy_(&handle);
    return out;
  }

  std::string version() const override {
    unsigned major = 0, minor = 0;
    version_(&major, &minor);
    return fmt::format("nvjitlink {}.{}", major, minor);
  }

 private:
  std::string error_log(void* handle) const {
    size_t bytes = 0;
    if (log_size_(handle, &bytes) != 0 || bytes == 0) return "nvJitLink gives no reason";
    std::string text(bytes, '\0');
    log_(handle, text.data());
    while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
    return text;
  }

  int (*create_)(void** handle, uint32_t count, const char** options) = nullptr;
  int (*add_data_)(void* handle, int kind, const void* data, size_t bytes, const char* name) = nullptr;
  int (*complete_)(void* handle) = nullptr;
  int (*cubin_size_)(void* handle, size_t* bytes) = nullptr;
  int (*cubin_)(void* handle, void* bytes) = nullptr;
  int (*destroy_)(void** handle) = nullptr;
  int (*log_size_)(void* handle, size_t* bytes) = nullptr;
  int (*log_)(void* handle, char* text) = nullptr;
  int (*version_)(unsigned* major, unsigned* minor) = nullptr;
};

// A file that is gone when its name goes out of scope.
class TemporaryFile {
 public:
  explicit TemporaryFile(const char* extension) {
    static std::atomic<int> count = 0;
    path_ = fmt::format("/tmp/cresset_{}_{}{}", ::getpid(), count++, extension);
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Ran {
  int status;
  std::string output;
};
Ran run(const std::string& command) {
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "no process"};
  std::string output;
  char part[4096];
  while (const size_t bytes = ::fread(part, 1, sizeof(part), pipe)) output.append(part, bytes);
  return {::pclose(pipe), std::move(output)};
}

Ran run_ptxas(const std::string& program, const std::string& ptx, int chip, const char* options,
              const std::string& result) {
  const TemporaryFile source(".ptx");
  if (!write_file(source.path(), ptx)) return {-1, "no room for temporary files"};
  return run(fmt::format("{} -arch=sm_{} -O3 {} {} -o {}", program, chip, options, source.path(), result));
}

class Ptxas final : public Assembler {
 public:
  Ptxas(std::string program, std::string version) : program_(std::move(program)), version_(std::move(version)) {}
  Result<std::string> assemble(const std::string& ptx, int chip) const override {
    const TemporaryFile cubin(".cubin");
    const Ran ran = run_ptxas(program_, ptx, chip, "", cubin.path());
    if (ran.status != 0) return failure(ran.output);
    std::optional<std::string> bytes = read_file(cubin.path());
    return bytes ? Result<std::string>(*std::move(bytes)) : Result<std::string>(failure("ptxas wrote nothing"));
  }
  std::string version() const override { return version_; }

 private:
  std::string program_, version_;
};

int number_before(const std::string& line, const std::string& what) {
  const size_t end = line.find(what);
  if (end == std::string::npos) return 0;
  size_t start = end;
  while (start > 0 && line[start - 1] >= '0' && line[start - 1] <= '9') --start;
  return std::atoi(line.substr(start, end - start).c_str());
}

}  // namespace

Result<std::shared_ptr<const Assembler>> open_nvjitlink(const std::vector<std::string>& folders) {
  constexpr const char* kNames[] = {"libnvJitLink.so.13", "libnvJitLink.so.12"};
  for (const std::string& folder : folders)
    for (const char* name : kNames)
      if (auto found = NvJitLink::open(folder + "/" + name)) return std::shared_ptr<const Assembler>(std::move(found));
  for (const char* name : kNames)
    if (auto found = NvJitLink::open(name)) return std::shared_ptr<const Assembler>(std::move(found));
  return Fallback{FallbackReason::CodegenFailed, "opening libnvJitLink", "install a CUDA build of torch"};
}

Result<std::shared_ptr<const Assembler>> open_ptxas(const std::string& program) {
  const Ran ran = run(program + " --version");
  const size_t at = ran.output.find("release ");
  if (ran.status != 0 || at == std::string::npos)
    return Fallback{FallbackReason::CodegenFailed, "running " + program, ""};
  return std::shared_ptr<const Assembler>(
      std::make_shared<Ptxas>(program, "ptxas " + ran.output.substr(at, ran.output.find('\n', at) - at)));
}

Result<std::vector<Usage>> usage_by_ptxas(const std::string& ptx, int chip, const std::string& program) {
  const Ran ran = run_ptxas(program, ptx, chip, "-v", "/dev/null");
  if (ran.status != 0) return failure(ran.output);
  std::vector<Usage> out;
  size_t start = 0;
  while (start < ran.output.size()) {
    const size_t end = std::min(ran.output.find('\n', start), ran.output.size());
    const std::string line = ran.output.substr(start, end - start);
    start = end + 1;
    constexpr std::string_view kFunction = "Compiling entry function '";
    if (const size_t at = line.find(kFunction); at != std::string::npos) {
      const size_t name = at + kFunction.size();
      out.push_back({line.substr(name, line.find('\'', name) - name)});
    }
    if (out.empty()) continue;
    Usage& usage = out.back();
    if (line.find("bytes stack frame") != std::string::npos) {
      usage.stack_bytes = number_before(line, " bytes stack frame");
      usage.spill_bytes = number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
    }
    if (line.find(" registers") != std::string::npos) usage.registers = number_before(line, " registers");
  }
  return out;
}

}  // namespace cresset::codegen::nvptx
