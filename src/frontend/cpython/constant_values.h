// Plain immutable values, which guards compare by type and value.
#pragma once

#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {

// A placeholder for an item which is an input of the program: it equals every value.
PyObject* any_input();
// Whether `got` can replace `expected`: plain immutable values are compared by type and value, other objects by
// identity.
bool same_constant(PyObject* expected, PyObject* got);
// int, float, str, bytes, bool, None, ..., and tuples of these.
bool is_constant_of_rare_type(PyObject* object);
inline bool is_constant_value(PyObject* object) {
  const PyTypeObject* const type = Py_TYPE(object);
  if (type == &PyUnicode_Type || type == &PyLong_Type || type == &PyBool_Type || object == Py_None) return true;
  if (is_heap_type(type) || type == &PyFunction_Type || type == &PyDict_Type || type == &PyODict_Type ||
      type == &PyCFunction_Type)
    return false;
  return is_constant_of_rare_type(object);
}

}  // namespace cresset::frontend
