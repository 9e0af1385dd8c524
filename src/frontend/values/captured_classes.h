// Classes which a call created and which outlive the creating segment. Later calls create no class and share the class
// of the first call, so the class must not change.
#pragma once

#include <functional>
#include <string>

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// Returns why calls cannot share the class: a mutable object in it. Returns an empty string when calls can share it,
// and records the class.
std::string share_class(PyTypeObject* type, const std::function<bool(PyObject*)>& existed);
bool is_shared_class(PyTypeObject* type);
// Whether a running function created the function. Functions of a module and methods of a class, which calls share, do
// not count.
bool is_made_by_function(PyObject* function);

}  // namespace cresset::frontend
