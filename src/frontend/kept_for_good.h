// Globals that torch's functions fill when they first run, and ask before they do: `if not checked: checked = True`.
// They are its own caches. What they hold changes when anything in the process first needs it, and nothing that a
// program computes: no fact speaks of them, and no later call writes them.
#pragma once

#include <Python.h>

namespace cresset::frontend {

// Whether code of torch's keeps the global so. Of others it is state: they may put it back.
bool keeps_for_good(PyCodeObject* code, PyObject* name);

// Names in classes where CPython's library keeps what it found of the class: of pickling, the names of slots.
bool is_kept_in_class(PyObject* name);

}  // namespace cresset::frontend
