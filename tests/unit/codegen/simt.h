// GPU kernels on the host: the code that is emitted for NVPTX, compiled for this machine, with functions of this
// runtime in the place of NVPTX's intrinsics. The threads of a block are fibers, whose order a seed decides; barriers
// and shuffles yield; shared memory holds garbage when a block starts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/nvptx/launch.h"
#include "codegen/nvptx/schedule.h"

namespace cresset::codegen::nvptx {

class SimtKernel {
 public:
  // The variants that the schedule has. Emits code; reads the kernel's pool.
  SimtKernel(const loop::Kernel& kernel, const Schedule& schedule);
  ~SimtKernel();

  // `parameters`: as emit_kernel.h says. Empty, or what went wrong: threads that wait for others which never come.
  std::string run(const Launch& launch, int64_t* parameters, uint32_t seed) const;
  // One launch as the device would do it, with its passes and workspace.
  std::string launch(const Launch& launch, const Numbers& numbers, const std::vector<void*>& buffers,
                     const std::vector<int64_t>& symbols, uint32_t seed) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_[kVariants];
};

}  // namespace cresset::codegen::nvptx
