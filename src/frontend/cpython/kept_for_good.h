// Globals which torch's functions fill at their first run and test beforehand: `if not checked: checked = True`. These
// globals are caches of torch. Their contents change at arbitrary times in the process, without effect on the results
// of a program. They are excluded from guards and from replayed side effects.
#pragma once

#include <Python.h>

namespace cresset::frontend {

// Whether torch's code keeps the global in this way. Globals of all other code are state, because their code may reset
// them.
bool keeps_for_good(PyCodeObject* code, PyObject* name);

// Names of class attributes where the standard library caches results about the class, for example the slot names for
// pickling.
bool is_kept_in_class(PyObject* name);

}  // namespace cresset::frontend
