// Methods of C code with the object that they are of: list.append of a list, what super().__init__ gives where the base
// is C code's.
#pragma once

#include "frontend/anatomy.h"

namespace cresset::frontend {

// A C function with a self of its own, or a method-wrapper.
bool is_bound_method(PyObject* object);
// Kind::BuiltinMethod. By the descriptor: what the object's class has under that name may be another thing.
Anatomy anatomy_of_bound(PyObject* method);
PyRef make_bound(const Anatomy& anatomy);

}  // namespace cresset::frontend
