// The memory of torch's simulated CUDA devices: memory of the host, filled with garbage, counted and limited.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

namespace cresset::gpu_simulator {

inline constexpr c10::DeviceIndex kDevices = 2;

struct MemoryCounters {
  int64_t allocations = 0;
  int64_t allocated_bytes = 0;  // since the start
  int64_t live_bytes = 0, peak_bytes = 0;
  int64_t limit = 0;  // 0: none. An allocation beyond it raises torch's OutOfMemoryError.
};

MemoryCounters memory_counters(c10::DeviceIndex device);
void reset_peak(c10::DeviceIndex device);
void set_memory_limit(c10::DeviceIndex device, int64_t bytes);
// The byte in fresh memory. 0xff makes floating-point numbers NaN.
void set_garbage(uint8_t byte);

// Between begin and end, memory that this thread allocates is never given to anybody else, also when it is freed: a
// recording keeps it.
void begin_keeping();
void end_keeping();

// Torch's allocator for CUDA: on the current device.
c10::Allocator& cuda_allocator();
// Memory of the same device for a storage that kernels of the CPU see (and may enlarge).
c10::Allocator& view_allocator(c10::DeviceIndex device);
// Host memory, registered as pinned.
c10::Allocator& pinned_allocator();
bool is_pinned(const void* data);

// Memory of a CPU tensor as memory of the device: the pointer keeps the storage alive.
c10::DataPtr adopt(const c10::Storage& cpu, c10::DeviceIndex device);

}  // namespace cresset::gpu_simulator
