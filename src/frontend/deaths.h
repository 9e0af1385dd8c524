// Whether a program notices when an object dies.
#pragma once

#include "frontend/py_ref.h"

namespace cresset::frontend {

// Classes, functions and modules are not what anybody watches dying.
bool may_be_watched(PyObject* object);
// One that may be, and has weak references to it.
bool is_watched_weakly(PyObject* object);

}  // namespace cresset::frontend
