// What an object of C code's own refers to, and how another object takes the place of that.
#pragma once

#include <functional>

#include "frontend/py_ref.h"

namespace cresset::frontend {

// Iterators of C code and their kin: their members are references and numbers, which nothing but they themselves looks
// at. Of those that are here, replace_held() may be asked.
bool holds_inside(PyObject* object);

// Calls replaced() for each object that this one refers to, and puts what that gives in its place. The object stays
// what it is: nobody sees it done, and an iterator stays where it was.
void replace_held(PyObject* object, const std::function<PyRef(PyObject*)>& replaced);

}  // namespace cresset::frontend
