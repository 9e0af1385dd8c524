// The members which __slots__ adds to instances of a class: a pointer each, stored by C code.
#pragma once

#include <vector>

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// The slot descriptors (borrowed) of the class and its base classes.
std::vector<PyObject*> slots_of(const PyTypeObject* type);
// Whether the class statements between `base` and the type add only a __dict__, a __weakref__ and slots.
bool adds_only_dict_and_slots(const PyTypeObject* type, const PyTypeObject* base);

bool is_slot(PyObject* object);  // a slot descriptor
// The value in the slot; empty for an unset slot.
PyRef held_in_slot(PyObject* object, PyObject* slot);
void set_slot(PyObject* object, PyObject* slot, PyObject* value);

// Whether attribute reads and stores on instances call no functions of the program.
inline bool has_plain_attributes(const PyTypeObject* type) {
  return type->tp_getattro == PyObject_GenericGetAttr && type->tp_setattro == PyObject_GenericSetAttr;
}

}  // namespace cresset::frontend
