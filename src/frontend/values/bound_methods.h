// C methods bound to an object: `list.append` of a list, or the result of `super().__init__` where the base is a C
// class.
#pragma once

#include "frontend/values/object_layout_parts.h"

namespace cresset::frontend {

// Whether a C function is a method bound to an instance.
bool has_own_self(PyObject* c_function);
// Whether the object is a C function with a self of its own, or a method-wrapper.
bool is_bound_method(PyObject* object);
// Returns Kind::BuiltinMethod. The form is the descriptor, because the object's class may hold another object under the
// method's name.
ObjectLayout layout_of_bound(PyObject* method);
PyRef make_bound(const ObjectLayout& layout);

}  // namespace cresset::frontend
