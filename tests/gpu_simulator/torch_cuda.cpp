// The functions of torch._C which CPU builds lack and torch.cuda calls.
#include "torch_cuda.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/utils/pybind.h>

#include "cuda_devices.h"
#include "cuda_memory.h"

namespace cresset::gpu_simulator {
namespace {

namespace py = pybind11;
using c10::DeviceIndex;

const c10::impl::DeviceGuardImplInterface& guard() { return *c10::impl::getDeviceGuardImpl(c10::kCUDA); }

DeviceIndex exchange_device(DeviceIndex device) {
  return device < 0 ? current_device() : guard().exchangeDevice({c10::kCUDA, device}).index();
}

py::tuple stream_data(const c10::Stream& stream) {
  return py::make_tuple(stream.id(), stream.device_index(), static_cast<int>(stream.device_type()));
}

py::dict statistic(int64_t current, int64_t peak, int64_t allocated) {
  py::dict all;
  all["current"] = current;
  all["peak"] = peak;
  all["allocated"] = allocated;
  all["freed"] = allocated - current;
  py::dict out;
  out["all"] = all;
  return out;
}

// As torch.cuda.memory_stats_as_nested_dict gives it. Nothing is cached: reserved memory is allocated memory.
py::dict memory_stats(DeviceIndex device) {
  const MemoryCounters c = memory_counters(device);
  py::dict out;
  for (const char* name : {"allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes"})
    out[name] = statistic(c.live_bytes, c.peak_bytes, c.allocated_bytes);
  out["allocation"] = statistic(0, 0, c.allocations);
  return out;
}

void define_devices(py::module_& m) {
  m.def("_cuda_init", [] {});
  m.def("_cuda_getDeviceCount", [] { return static_cast<int>(kDevices); });
  m.def("_cuda_getDevice", [] { return static_cast<int>(current_device()); });
  m.def("_cuda_setDevice", [](DeviceIndex device) { exchange_device(device); });
  m.def("_cuda_exchangeDevice", [](DeviceIndex device) { return static_cast<int>(exchange_device(device)); });
  m.def("_cuda_maybeExchangeDevice", [](DeviceIndex device) { return static_cast<int>(exchange_device(device)); });
  m.def("_cuda_canDeviceAccessPeer", [](DeviceIndex, DeviceIndex) { return true; });
  m.def("_cuda_getArchFlags", [] { return "sm_90"; });
  m.def("_cuda_synchronize", [] {});
  m.def("_cuda_get_sync_debug_mode", [] { return 0; });
  m.def("_cuda_set_sync_debug_mode", [](int) {});
}

void define_streams(py::module_& m) {
  m.def("_cuda_getCurrentStream",
        [](DeviceIndex device) { return stream_data(guard().getStream({c10::kCUDA, device})); });
  m.def("_cuda_getCurrentRawStream", [](DeviceIndex device) { return guard().getStream({c10::kCUDA, device}).id(); });
  m.def("_cuda_getDefaultStream",
        [](DeviceIndex device) { return stream_data(guard().getDefaultStream({c10::kCUDA, device})); });
  m.def(
      "_cuda_setStream",
      [](int64_t stream_id, DeviceIndex device_index, int) {
        exchange_device(device_index);
        guard().exchangeStream(c10::Stream(c10::Stream::UNSAFE, {c10::kCUDA, device_index}, stream_id));
      },
      py::arg("stream_id"), py::arg("device_index"), py::arg("device_type"));
}

void define_memory(py::module_& m) {
  m.def("_cuda_memoryStats", &memory_stats);
  m.def("_cuda_resetPeakMemoryStats", &reset_peak);
  m.def("_cuda_resetAccumulatedMemoryStats", [](DeviceIndex) {});
  m.def("_cuda_emptyCache", [] {});
  m.def("_cuda_ipc_collect", [] {});
}

}  // namespace

void define_torch_functions(py::module_& m) {
  define_devices(m);
  define_streams(m);
  define_memory(m);
}

}  // namespace cresset::gpu_simulator
