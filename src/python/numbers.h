#pragma once

#include <torch/csrc/utils/pybind.h>

namespace cresset::python {

void init_numbers(pybind11::module_& m);

}  // namespace cresset::python
