// Symbolic ints which appear as numpy integers to the program.
#pragma once

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// `is_numpy_int`: a symbolic int which appears as numpy.int64 to the program
// (cresset/_substitutes/sym_numpy_int.py). `numpy_int_of` converts a symbolic or plain int; `int_of_numpy`
// converts back.
bool is_numpy_int(PyObject* number);
PyRef numpy_int_of(PyObject* number);
PyRef int_of_numpy(PyObject* number);

}  // namespace cresset::frontend
