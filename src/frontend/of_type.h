// Whether an object is of a type that C code gives a layout of its own, or of one derived from it: what is asked of
// many objects, of which most are of no such type.
#pragma once

#include <Python.h>

namespace cresset::frontend {

// What extends `object` alone extends no type with a layout of its own, which would be its base.
inline bool is_of_type(PyObject* object, PyTypeObject* with_layout) {
  PyTypeObject* const type = Py_TYPE(object);
  if (type == with_layout) return true;
  if (type->tp_base == nullptr || type->tp_base == &PyBaseObject_Type) return false;
  return PyType_IsSubtype(type, with_layout) != 0;
}

inline bool is_weakref(PyObject* object) { return is_of_type(object, &_PyWeakref_RefType); }
inline bool is_of_module_type(PyObject* object) { return is_of_type(object, &PyModule_Type); }

}  // namespace cresset::frontend
