// The GPU of the test binary that has one.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace cresset::codegen {

// The first GPU, with the backend configured for it; once a process. Fallback: there is no driver or no GPU.
// CRESSET_TEST_CUDA_LIBRARIES names folders of libnvJitLink, separated by colons.
Result<std::shared_ptr<runtime::GpuDevice>> test_device();

}  // namespace cresset::codegen
