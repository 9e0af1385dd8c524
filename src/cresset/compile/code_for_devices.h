// A program's kernels, handed to the backend of each one's device.
#pragma once

#include <memory>
#include <vector>

#include "codegen/backend.h"
#include "runtime/program.h"

namespace cresset::driver {

// Kernels on their way to code, as CachingBackend takes them: scheduling may write to the kernels' environment, and
// generating does not.
class CodeForDevices {
 public:
  // Fallback: a device has no backend.
  static Result<CodeForDevices> schedule(const runtime::Program& program,
                                         const std::vector<const loop::Kernel*>& kernels);
  size_t distinct() const;
  Result<codegen::CompiledKernels> generate() const;

 private:
  struct Part {
    codegen::Backend* backend;
    std::vector<size_t> positions;  // of its kernels among the program's
    std::shared_ptr<codegen::ScheduledKernels> scheduled;
  };
  std::vector<Part> parts_;
  size_t count_ = 0;
};

// The same kernels from memory or disk; nullopt when one of them is missing.
std::optional<codegen::CompiledKernels> find_code(const std::vector<runtime::KernelRecord>& records);

}  // namespace cresset::driver
