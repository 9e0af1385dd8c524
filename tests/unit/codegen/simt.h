// GPU kernels on the host, for tests: the code emitted for NVPTX, run by the simulator of GPUs in the shapes of
// launches that a test wants.
#pragma once

#include <string>
#include <vector>

#include "codegen/nvptx/launch.h"
#include "codegen/nvptx/schedule.h"
#include "simt_module.h"

namespace cresset::codegen::nvptx {

class SimtKernel {
 public:
  // The variants that the schedule has. Emits code; reads the kernel's pool.
  SimtKernel(const loop::Kernel& kernel, const Schedule& schedule);

  // One launch as the device would do it, with its passes and workspace. Empty, or what went wrong: threads that wait
  // for others which never come, or writes beyond the workspace.
  std::string launch(const Launch& launch, const Numbers& numbers, const std::vector<void*>& buffers,
                     const std::vector<int64_t>& symbols, uint32_t seed) const;

 private:
  std::unique_ptr<gpu_simulator::SimtModule> module_;
};

}  // namespace cresset::codegen::nvptx
