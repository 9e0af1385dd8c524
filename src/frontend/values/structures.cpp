#include "frontend/values/structures.h"

#include <torch/csrc/Dtype.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>

#include "frontend/cpython/containers.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/values/object_layout.h"
#include "frontend/values/value_objects.h"

namespace cresset::frontend {

bool is_identity(PyObject* object) {
  return PyType_Check(object) || PyFunction_Check(object) || is_c_function(object) || PyMethod_Check(object) ||
         THPDtype_Check(object) || THPLayout_Check(object) || THPMemoryFormat_Check(object) || is_enum_member(object) ||
         is_module(object);
}

bool is_named_tuple(PyObject* object) { return PyTuple_Check(object) && PyObject_HasAttrString(object, "_fields"); }

bool is_any_tuple(PyObject* object) { return is_tuple_or_size(object) || is_named_tuple(object); }

bool is_other_container(PyObject* object) {
  static PyObject* const with_defaults = module_attribute("collections", "defaultdict");
  return (is_deque(object) && !is_data_object(object)) || PySet_CheckExact(object) ||
         (PyObject*)Py_TYPE(object) == with_defaults;
}

bool is_dict(PyObject* object) {
  static PyObject* ordered = module_attribute("collections", "OrderedDict");
  return PyDict_CheckExact(object) || Py_TYPE(object) == (PyTypeObject*)ordered;
}

bool is_structure(PyObject* object) {
  return is_any_tuple(object) || PyList_CheckExact(object) || is_dict(object) || is_other_container(object) ||
         (is_data_object(object) && !is_identity(object));
}

}  // namespace cresset::frontend
