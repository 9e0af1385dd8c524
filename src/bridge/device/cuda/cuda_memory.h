// Memory of CUDA devices, from torch's caching allocator. Blocks are given back while kernels that use them may still
// run: the allocator hands them out again on the same stream only.
#pragma once

#include "bridge/device/device_memory.h"

namespace cresset::bridge {

const DeviceMemory& cuda_memory(c10::Device device);

// The stream on which torch's operators of this thread run on the device, as the driver knows it.
void* current_stream(c10::Device device);

}  // namespace cresset::bridge
