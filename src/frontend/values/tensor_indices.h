// Tensors of one integer as indices. torch reads the integer and selects by it. During capture the integer stays
// symbolic in the program.
#pragma once

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// Converts the index of `x[key]`. 0-dimensional integer tensors, also as slice bounds, become symbols for
// data-dependent numbers. Only the selection uses these symbols. Returns the key itself when it holds no such tensor.
PyRef with_numbers_of_data(PyObject* key);

}  // namespace cresset::frontend
