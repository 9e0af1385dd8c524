// What the first capture of a process puts in place.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace cresset::frontend {

// The capture kernels on torch's operators; once a process, counted apart from what a capture takes (ms_setup). Needs
// the GIL.
void set_up_capturing();

// The number that a tensor stands for: torch's argument parser turns a symbolic one that is given for a tensor into a
// tensor with the attribute _wrapped_number; the tensor's own contents mean nothing.
std::optional<at::Scalar> symbolic_number(const at::Tensor& tensor);

}  // namespace cresset::frontend
