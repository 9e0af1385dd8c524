// Initialization at the first capture of a process.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace cresset::frontend {

// Installs the capture kernels for torch's operators, once per process. The time is counted apart from capture time
// (ms_setup). Needs the GIL.
void set_up_capturing();

// The symbolic number behind a tensor. torch's argument parser converts a symbolic number in place of a tensor into a
// tensor with the attribute _wrapped_number, whose contents are meaningless.
std::optional<at::Scalar> symbolic_number(const at::Tensor& tensor);

}  // namespace cresset::frontend
