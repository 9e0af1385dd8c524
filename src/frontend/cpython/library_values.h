// Immutable values of Python's library.
#pragma once

#include <Python.h>

#include <initializer_list>

namespace cresset::frontend {

// A type parameter of a function, class or alias which is only a name. Bounds and defaults are evaluated lazily and
// cached, so parameters with them are excluded.
bool is_plain_type_parameter(PyObject* object);
// Dates, decimal numbers, patterns and matches, plain type parameters: two calls may share such an object.
bool is_library_value(PyObject* object);

// Whether the type is among these types.
bool is_one_of(PyObject* type, std::initializer_list<PyObject*> types);

}  // namespace cresset::frontend
