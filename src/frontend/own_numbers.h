// The classes of a capture's symbolic numbers (python/cresset/_numbers.py): torch's, with what they lack of Python's.
// Torch makes numbers of its own classes, which stay as they are for everybody else: those of a capture become numbers
// of these classes where the program meets them. To torch's C++ code they are what they were.
#pragma once

#include <Python.h>

#include "frontend/eval/hooks.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

// Torch's own, until those of this package are known. Borrowed.
PyTypeObject* symint_class();
PyTypeObject* symfloat_class();
PyTypeObject* symbool_class();
// Whether it is one of these, or what torch has instead.
bool is_class_of_numbers(PyTypeObject* type);

// The object itself: a number of a capture's, also in tuples and lists, is of these classes from now on.
PyObject* adopt(PyObject* object);
void adopt_arguments(const CressetCall& call);
void adopt_operands(const CressetOperator& op);

// For the module. _use_numbers(SymInt, SymFloat, SymBool); _adopt(object): the object.
PyObject* use_numbers(PyObject* module, PyObject* args);
PyObject* adopt_object(PyObject* module, PyObject* object);

}  // namespace cresset::frontend
