// Operators between symbolic ints and plain ints, without a Python frame. Programs which read sizes execute hundreds of
// them. All other operators of symbolic numbers are Python code (cresset._substitutes).
#pragma once

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// Returns a method for the class `type` of symbolic ints which implements the operator `name` (`__add__`, ...) and
// calls `otherwise` for unsupported operands. Returns Py_None when the operator has no implementation here.
PyObject* number_operator(PyTypeObject* type, const char* name, PyObject* otherwise);

// The symbolic result of an operation without an expression: the remainder or floor quotient of floats ("mod",
// "floordiv"), or a whole number (bridge::float_ops::whole_op). `b` may be nullptr. Empty when no symbol can represent
// the result; Python then computes with the plain numbers.
PyRef computed_number(const char* name, PyObject* a, PyObject* b);

}  // namespace cresset::frontend
