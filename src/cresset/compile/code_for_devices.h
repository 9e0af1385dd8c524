// Passes each kernel of a program to the backend of its device.
#pragma once

#include <memory>
#include <vector>

#include "codegen/backend.h"
#include "runtime/program.h"

namespace cresset::driver {

// Kernels between scheduling and code generation, for CachingBackend. Scheduling may write to the kernels' environment;
// code generation does not.
class CodeForDevices {
 public:
  // Returns a fallback when a device has no backend.
  static Result<CodeForDevices> schedule(const runtime::Program& program,
                                         const std::vector<const loop::Kernel*>& kernels);
  size_t distinct() const;
  Result<codegen::CompiledKernels> generate() const;

 private:
  struct Part {
    codegen::Backend* backend;
    std::vector<size_t> positions;  // positions of its kernels in the program
    std::shared_ptr<codegen::ScheduledKernels> scheduled;
  };
  std::vector<Part> parts_;
  size_t count_ = 0;
};

// Loads the same kernels from memory or disk. Returns nullopt when a kernel is missing.
std::optional<codegen::CompiledKernels> find_code(const std::vector<runtime::KernelRecord>& records);

}  // namespace cresset::driver
