// Machine code from kernels, for one kind of device. No torch: what a backend needs of the process is given to it
// (cpu/cpu_backend.h).
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

// Kernels on their way to code.
class ScheduledKernels {
 public:
  virtual ~ScheduledKernels() = default;
  virtual size_t distinct() const = 0;  // kernels of equal structure share their code
};

// Process-wide: kernels are compiled once and shared. Thread safe.
class Backend {
 public:
  virtual ~Backend() = default;

  // Two steps, between which any time may pass. Scheduling writes to the kernels' environment (it simplifies);
  // generating reads it only, so that others may read it meanwhile. The kernels must outlive the schedules.
  virtual std::shared_ptr<ScheduledKernels> schedule(const std::vector<const loop::Kernel*>& kernels) = 0;
  // Result i belongs to kernel i. `scheduled` is this backend's.
  virtual Result<CompiledKernels> generate(const ScheduledKernels& scheduled) = 0;
  Result<CompiledKernels> compile(const std::vector<const loop::Kernel*>& kernels) {
    return generate(*schedule(kernels));
  }

  // Kernels of an earlier process, from memory or disk; nullopt when one of them is missing.
  virtual std::optional<CompiledKernels> find(const std::vector<KernelRecord>& records) = 0;
  // Version of the code generator, device and libraries: what decides code beside the kernel. Part of cache keys.
  virtual std::string target_text() = 0;
  virtual bool uses_disk() = 0;

  virtual CodegenStats stats() const = 0;
  virtual void clear_memory_cache() = 0;
};

// nullptr: nothing generates code for devices of this kind.
Backend* backend_of(DeviceKind device);
// Of all backends.
CodegenStats total_stats();

}  // namespace cresset::codegen
