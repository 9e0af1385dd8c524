// A part of torch's memory for CUDA devices from which the work of a recorded graph allocates: what was freed there is
// given out again to later recordings only, never to other work, because the graph's runs write to it.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

#include "runtime/device.h"

namespace cresset::bridge {

class AllocationPool {
 public:
  virtual ~AllocationPool() = default;  // gives the memory back
  // Between begin() and end(), what is allocated for work of the stream comes from the pool.
  virtual void begin(runtime::Stream stream) = 0;
  virtual void end() = 0;
};

// How pools are made: by torch's caching allocator; tests have another way, as their allocator is another.
using MakeAllocationPool = std::unique_ptr<AllocationPool> (*)(c10::Device device);
std::unique_ptr<AllocationPool> make_allocation_pool(c10::Device device);
void set_allocation_pools(MakeAllocationPool make);

}  // namespace cresset::bridge
