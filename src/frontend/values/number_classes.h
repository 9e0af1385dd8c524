// cresset's classes of symbolic numbers (python/cresset/_numbers.py): torch's classes with the missing features of
// Python's numbers. torch creates instances of its own classes, which stay unchanged for all other users. Numbers of a
// capture become instances of cresset's classes when the program meets them. torch's C++ code does not notice the
// difference.
#pragma once

#include <Python.h>

#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// torch's own classes, until cresset's classes are registered. Borrowed.
PyTypeObject* symint_class();
PyTypeObject* symfloat_class();
PyTypeObject* symbool_class();
// Whether the type is a class of symbolic numbers, cresset's or torch's.
bool is_class_of_numbers(PyTypeObject* type);

// Changes the class of a number of a capture, also in tuples and lists. Returns the object itself.
PyObject* adopt(PyObject* object);
void adopt_arguments(const CressetCall& call);
void adopt_operands(const CressetOperator& op);

// Module functions: _use_numbers(SymInt, SymFloat, SymBool); _adopt(object): the object.
PyObject* use_numbers(PyObject* module, PyObject* args);
PyObject* adopt_object(PyObject* module, PyObject* object);

}  // namespace cresset::frontend
