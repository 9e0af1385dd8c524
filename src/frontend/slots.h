// What __slots__ give the instances of a class: members that C code keeps, one pointer each.
#pragma once

#include <vector>

#include "frontend/py_ref.h"

namespace cresset::frontend {

// Their descriptors (borrowed), of the class and those that it derives from.
std::vector<PyObject*> slots_of(const PyTypeObject* type);
// Whether all that class statements add to instances of `base` is a __dict__, a __weakref__ and slots.
bool adds_only_dict_and_slots(const PyTypeObject* type, const PyTypeObject* base);

bool is_slot(PyObject* object);  // such a descriptor
// What the object holds there; empty when it holds nothing.
PyRef held_in_slot(PyObject* object, PyObject* slot);
void set_slot(PyObject* object, PyObject* slot, PyObject* value);

// Whether attributes of its instances are read and set without asking functions of the program.
inline bool has_plain_attributes(const PyTypeObject* type) {
  return type->tp_getattro == PyObject_GenericGetAttr && type->tp_setattro == PyObject_GenericSetAttr;
}

}  // namespace cresset::frontend
