// The kinds of objects which guards compare by identity or by structure.
#pragma once

#include <Python.h>

namespace cresset::frontend {

// Objects that programs compare by identity.
bool is_identity(PyObject* object);
bool is_named_tuple(PyObject* object);
// Includes tuple subclasses whose instances are built from the items alone.
bool is_any_tuple(PyObject* object);
bool is_other_container(PyObject* object);
bool is_dict(PyObject* object);
// Whether the object is guarded by structure when its identity differs between calls: a container, or an object with
// data. `parts_of_structure` (arg_spec.h) returns its parts.
bool is_structure(PyObject* object);

}  // namespace cresset::frontend
