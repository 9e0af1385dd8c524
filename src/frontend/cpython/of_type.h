// Type test for types with an object layout of their own in C, and for their subclasses. The test is fast for the many
// objects of other types.
#pragma once

#include <Python.h>

namespace cresset::frontend {

// A type whose base is `object` does not extend a type with its own layout.
inline bool is_of_type(PyObject* object, PyTypeObject* with_layout) {
  PyTypeObject* const type = Py_TYPE(object);
  if (type == with_layout) return true;
  if (type->tp_base == nullptr || type->tp_base == &PyBaseObject_Type) return false;
  return PyType_IsSubtype(type, with_layout) != 0;
}

inline bool is_weakref(PyObject* object) { return is_of_type(object, &_PyWeakref_RefType); }
inline bool is_of_module_type(PyObject* object) { return is_of_type(object, &PyModule_Type); }

}  // namespace cresset::frontend
