// Runs the threads of a GPU kernel on the host, one after the other. Threads which wait for each other (at barriers, in
// shuffles) are fibers; the seed decides their order.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/device.h"

namespace cresset::gpu_simulator {

// A kernel as code of the host.
struct SimtFunction {
  // Runs the current thread. The parameters are an array in memory, 8 bytes each.
  void (*run)(int64_t* parameters) = nullptr;
  // Fills the kernel's shared memory with garbage, before each block: that many bytes of the dynamic part.
  void (*poison)(int64_t dynamic_bytes) = nullptr;
  bool waits = false;  // threads wait for each other
};

// Runs all blocks of the grid. Safe to call from several threads, which take turns. Returns an empty string, or the
// failure: threads which wait for others that never come.
std::string run_grid(const SimtFunction& function, const runtime::LaunchConfig& config, int64_t* parameters,
                     uint32_t seed);

// The function which replaces an intrinsic of NVPTX in the host's code.
struct SimtIntrinsic {
  const char* intrinsic;  // LLVM's name
  const char* name;       // the replacement's
  void* address;
  bool is_pure;  // false: the thread waits for others there
};
// Ends with a row without names.
extern const SimtIntrinsic kSimtIntrinsics[];

}  // namespace cresset::gpu_simulator
