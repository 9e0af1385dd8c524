// Code generation from kernels for a kind of device. No torch: a backend receives the required functions of the process
// from outside (cpu/cpu_backend.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/device.h"
#include "base/result.h"
#include "loop/kernel.h"
#include "runtime/compiled_kernel.h"

namespace cresset::codegen {

using runtime::CompiledKernel;
using runtime::KernelRecord;
using CompiledKernels = std::vector<std::shared_ptr<const CompiledKernel>>;

struct CodegenStats {
  int64_t kernels_requested = 0, kernels_compiled = 0, memory_hits = 0, disk_hits = 0;
  double milliseconds = 0;
};

// Kernels between scheduling and code generation.
class ScheduledKernels {
 public:
  virtual ~ScheduledKernels() = default;
  virtual size_t distinct() const = 0;  // kernels of equal structure share their code
};

// Process-wide: kernels are compiled once and shared. Thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;

  // Compilation has two steps, and any time may pass between them. Scheduling writes to the kernels' environment,
  // because it simplifies. Code generation only reads it, so other threads may read it at the same time. The kernels
  // must outlive the schedules.
  virtual std::shared_ptr<ScheduledKernels> schedule(const std::vector<const loop::Kernel*>& kernels) = 0;
  // Result i belongs to kernel i. `scheduled` must come from this backend.
  virtual Result<CompiledKernels> generate(const ScheduledKernels& scheduled) = 0;
  Result<CompiledKernels> compile(const std::vector<const loop::Kernel*>& kernels) {
    return generate(*schedule(kernels));
  }

  // Finds kernels of an earlier process in memory or on disk. Returns nullopt when a kernel is missing.
  virtual std::optional<CompiledKernels> find(const std::vector<KernelRecord>& records) = 0;
  // The inputs which determine code apart from the kernel: version of the code generator, device and libraries. Part of
  // cache keys.
  virtual std::string target_text() = 0;
  virtual bool uses_disk() = 0;

  virtual CodegenStats stats() const = 0;
  virtual void clear_memory_cache() = 0;
};

// nullptr: no backend supports devices of this kind.
Backend* backend_of(DeviceKind device);
// The sum over all backends.
CodegenStats total_stats();

}  // namespace cresset::codegen
