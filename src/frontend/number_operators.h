// Operators of symbolic ints among themselves and with plain ones, which most programs that ask for sizes do by the
// hundred: done here without a frame. All else of them is Python's (cresset._capture_patches).
#pragma once

#include "frontend/py_ref.h"

namespace cresset::frontend {

// A method for the class `type` of symbolic ints that does the operator `name` (`__add__`, ...) where it can, and calls
// `otherwise` where it cannot. Py_None where there is no such operator here.
PyObject* number_operator(PyTypeObject* type, const char* name, PyObject* otherwise);

// What an operation gives of `a` and `b` (which may be nullptr) that expressions do not have: the remainder or the
// whole quotient of floats ("mod", "floordiv"), or a whole number (bridge::float_ops::whole_op), as a symbol. Empty
// where it cannot be one: Python does it, of the numbers.
PyRef computed_number(const char* name, PyObject* a, PyObject* b);

}  // namespace cresset::frontend
