// Whether a program can observe the death of an object.
#pragma once

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// Returns false for classes, functions and modules, whose deaths programs do not observe.
bool may_be_watched(PyObject* object);
// Whether the object may be watched and has weak references to it.
bool is_watched_weakly(PyObject* object);

}  // namespace cresset::frontend
