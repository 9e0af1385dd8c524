// CUDA devices as torch and the code generator share them: the driver, torch's primary contexts, torch's libraries.
#pragma once

#include "base/result.h"
#include "codegen/nvptx/nvptx_backend.h"

namespace cresset::bridge {

// Sets up code generation for torch's CUDA devices, once a process. Fallback: torch has no CUDA device, or the driver
// is too old; operators on CUDA tensors then run eagerly.
const Result<bool>& set_up_cuda();

// Uses another device in the place of the machine's: a simulated GPU in tests. To be called before the first capture
// that sees a CUDA tensor.
void use_gpu(codegen::nvptx::NvptxOptions options);

}  // namespace cresset::bridge
