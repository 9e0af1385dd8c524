#include "frontend/values/torch_function_lookup.h"

#include <Python.h>

#include <utility>

#include "frontend/cpython/py_objects.h"
#include "frontend/values/number_classes.h"

namespace cresset::frontend {
namespace {

PyObject* raise_at_once(PyObject*, PyObject*, PyObject*) {
  PyErr_SetNone(PyExc_AttributeError);
  return nullptr;
}

PyTypeObject* absent_type() {
  static PyTypeObject* const made = [] {
    static PyType_Slot slots[] = {{Py_tp_descr_get, reinterpret_cast<void*>(&raise_at_once)}, {0, nullptr}};
    static PyType_Spec spec{"cresset._C._AbsentAttribute", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, slots};
    return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  }();
  return made;
}

}  // namespace

void answer_torch_function_quickly() {
  static bool done = false;
  if (std::exchange(done, true)) return;
  PyRef absent = absent_type() != nullptr ? PyRef::steal(PyObject_CallNoArgs((PyObject*)absent_type())) : PyRef();
  for (PyTypeObject* type : {symint_class(), symfloat_class(), symbool_class()})
    if (absent && PyObject_HasAttrString((PyObject*)type, "__torch_function__") == 0)
      PyObject_SetAttrString((PyObject*)type, "__torch_function__", absent.get());
  PyErr_Clear();
}

}  // namespace cresset::frontend
