// Tensors of one integer as indices: torch reads the number, and selects by it. Here the number stays in the program.
#pragma once

#include "frontend/py_ref.h"

namespace cresset::frontend {

// An index of a tensor, `x[key]`, with symbols for the numbers that data gives (0-dimensional tensors of integers, also
// as bounds of slices), which nobody but the selection is told; the key itself where there are none.
PyRef with_numbers_of_data(PyObject* key);

}  // namespace cresset::frontend
