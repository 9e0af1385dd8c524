#pragma once

#include <pybind11/pybind11.h>

namespace cresset::gpu_simulator {

// Adds functions called _cuda_*, for torch._C.
void define_torch_functions(pybind11::module_& m);

}  // namespace cresset::gpu_simulator
