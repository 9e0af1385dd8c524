// The references inside a C object, and their replacement by other objects.
#pragma once

#include <functional>

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// Whether the object is an iterator of C code or a similar object. Only the object itself reads its references and
// numbers. `replace_held()` accepts exactly these objects.
bool holds_inside(PyObject* object);

// Calls replaced() for each object which this object refers to, and stores the result in its place. The identity and
// the iteration position stay unchanged, and the program cannot observe the exchange.
void replace_held(PyObject* object, const std::function<PyRef(PyObject*)>& replaced);

}  // namespace cresset::frontend
