// Classes that a call made and that outlive the piece which made them. Later calls make none: they share the first
// one's, so nothing may be changed in it.
#pragma once

#include <functional>
#include <string>

#include "frontend/py_ref.h"

namespace cresset::frontend {

// Why calls cannot share this class: what in it may be changed. Empty when they can; the class is remembered then.
std::string share_class(PyTypeObject* type, const std::function<bool(PyObject*)>& existed);
bool is_shared_class(PyTypeObject* type);
// Whether a function was made by one that ran: not by a module, nor as a method of a class, which calls share.
bool is_made_by_function(PyObject* function);

}  // namespace cresset::frontend
