#include "frontend/cpython/slots.h"

#include <structmember.h>

#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {

bool is_slot(PyObject* object) {
  if (!Py_IS_TYPE(object, &PyMemberDescr_Type)) return false;
  const PyMemberDef* member = ((PyMemberDescrObject*)object)->d_member;
  return member->type == T_OBJECT_EX && (member->flags & READONLY) == 0 &&
         is_heap_type(((PyDescrObject*)object)->d_type);
}

std::vector<PyObject*> slots_of(const PyTypeObject* type) {
  std::vector<PyObject*> out;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = (PyTypeObject*)PyTuple_GET_ITEM(type->tp_mro, i);
    PyObject* const names = is_heap_type(base) ? ((PyHeapTypeObject*)base)->ht_slots : nullptr;
    for (Py_ssize_t j = 0; names != nullptr && j < PyTuple_GET_SIZE(names); ++j) {
      PyObject* found = PyDict_GetItemWithError(type_dict(base), PyTuple_GET_ITEM(names, j));
      if (found != nullptr && is_slot(found) && ((PyDescrObject*)found)->d_type == base) out.push_back(found);
    }
  }
  return out;
}

bool adds_only_dict_and_slots(const PyTypeObject* type, const PyTypeObject* base) {
  if (!is_heap_type(type) || type->tp_itemsize != 0 || !derives_in_python(type, base)) return false;
  // The dictionary may lie before the object from CPython 3.11 on, and the weak reference list from 3.12 on.
  const auto pointers = static_cast<Py_ssize_t>(slots_of(type).size()) +
                        (type->tp_dictoffset > 0 && base->tp_dictoffset == 0) +
                        (type->tp_weaklistoffset > 0 && base->tp_weaklistoffset == 0);
  return type->tp_basicsize == base->tp_basicsize + pointers * static_cast<Py_ssize_t>(sizeof(PyObject*));
}

PyRef held_in_slot(PyObject* object, PyObject* slot) {
  PyRef value = PyRef::steal(Py_TYPE(slot)->tp_descr_get(slot, object, (PyObject*)Py_TYPE(object)));
  if (!value) PyErr_Clear();
  return value;
}

void set_slot(PyObject* object, PyObject* slot, PyObject* value) {
  if (Py_TYPE(slot)->tp_descr_set(slot, object, value) < 0) throw PythonError{};
}

}  // namespace cresset::frontend
