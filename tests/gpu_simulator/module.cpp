// The Python module cresset_gpu_simulator: gives this process simulated CUDA devices. tests/python/gpu/simulator.py is
// its only user.
#include <torch/csrc/utils/pybind.h>

#include "bridge/device/cuda/allocation_pool.h"
#include "codegen/nvptx/nvptx_backend.h"
#include "cuda_devices.h"
#include "cuda_memory.h"
#include "simulated_gpu.h"
#include "torch_cuda.h"

namespace cresset::gpu_simulator {

const std::shared_ptr<SimulatedGpu>& gpu() {
  static const auto* const gpu = new std::shared_ptr<SimulatedGpu>(std::make_shared<SimulatedGpu>());
  return *gpu;
}

namespace {

namespace py = pybind11;
using codegen::nvptx::NvptxOptions;

// For cresset._C.use_gpu.
py::capsule gpu_options() {
  auto* const options = new NvptxOptions{.device = gpu(),
                                         .assembler = make_simulator_assembler(),
                                         .chip = gpu()->properties().chip,
                                         .from_disk_cache = false};
  return {options, [](void* made) { delete static_cast<NvptxOptions*>(made); }};
}

class KeepingPool final : public bridge::AllocationPool {
 public:
  void begin(runtime::Stream) override { begin_keeping(); }
  void end() override { end_keeping(); }
};

py::capsule allocation_pools() {
  static bridge::MakeAllocationPool make = [](c10::Device) -> std::unique_ptr<bridge::AllocationPool> {
    return std::make_unique<KeepingPool>();
  };
  return py::capsule(&make);
}

py::dict gpu_counters() {
  const GpuCounters& c = gpu()->counters();
  py::dict out;
  const std::pair<const char*, const std::atomic<int64_t>*> rows[] = {{"loads", &c.loads},
                                                                      {"launches", &c.launches},
                                                                      {"allocations", &c.allocations},
                                                                      {"allocated_bytes", &c.allocated_bytes},
                                                                      {"live_allocations", &c.live_allocations},
                                                                      {"copies", &c.copies},
                                                                      {"copied_bytes", &c.copied_bytes},
                                                                      {"fills", &c.fills},
                                                                      {"filled_bytes", &c.filled_bytes},
                                                                      {"synchronizations", &c.synchronizations},
                                                                      {"graphs", &c.graphs},
                                                                      {"graph_runs", &c.graph_runs},
                                                                      {"graph_updates", &c.graph_updates}};
  for (const auto& [name, counter] : rows) out[name] = counter->load();
  return out;
}

py::dict memory(c10::DeviceIndex device) {
  const MemoryCounters c = memory_counters(device);
  py::dict out;
  out["allocations"] = c.allocations;
  out["allocated_bytes"] = c.allocated_bytes;
  out["live_bytes"] = c.live_bytes;
  out["peak_bytes"] = c.peak_bytes;
  out["limit"] = c.limit;
  return out;
}

PYBIND11_MODULE(cresset_gpu_simulator, m) {
  register_devices();
  m.attr("devices") = static_cast<int>(kDevices);
  define_torch_functions(m);
  m.def("gpu_options", &gpu_options);
  m.def("allocation_pools", &allocation_pools);
  m.def("gpu_counters", &gpu_counters);
  m.def("fail_launch", [](int64_t n) { gpu()->fail_launch(n); });
  m.def("fail_allocation", [](int64_t n) { gpu()->fail_allocation(n); });
  m.def("memory", &memory);
  m.def("reset_peak", &reset_peak);
  m.def("set_memory_limit", &set_memory_limit);
  m.def("set_garbage", &set_garbage);
  m.def("set_cudnn", &set_cudnn);
  m.def("default_generator", [](c10::DeviceIndex device) { return default_generator(device); });
}

}  // namespace
}  // namespace cresset::gpu_simulator
