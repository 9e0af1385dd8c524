#include "codegen/backend.h"

#include "codegen/cpu/cpu_backend.h"
#include "codegen/nvptx/nvptx_backend.h"

namespace cresset::codegen {

Backend* backend_of(DeviceKind device) {
  switch (device) {
    case DeviceKind::Cpu:
      return &cpu::CpuBackend::get();
    case DeviceKind::Cuda: {
      nvptx::NvptxBackend& backend = nvptx::NvptxBackend::get();
      return backend.is_configured() ? &backend : nullptr;
    }
    case DeviceKind::Meta:
      return nullptr;
  }
  return nullptr;
}

CodegenStats total_stats() {
  CodegenStats total;
  for (const DeviceKind kind : {DeviceKind::Cpu, DeviceKind::Cuda, DeviceKind::Meta}) {
    const Backend* backend = backend_of(kind);
    if (backend == nullptr) continue;
    const CodegenStats stats = backend->stats();
    total.kernels_requested += stats.kernels_requested;
    total.kernels_compiled += stats.kernels_compiled;
    total.memory_hits += stats.memory_hits;
    total.disk_hits += stats.disk_hits;
    total.milliseconds += stats.milliseconds;
  }
  return total;
}

}  // namespace cresset::codegen
