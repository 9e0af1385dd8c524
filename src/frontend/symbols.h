// Symbolic numbers that leave a capture become plain ones.
#pragma once

#include "frontend/py_ref.h"

namespace cresset::frontend {

// The object with the symbolic numbers in it replaced by their values of this call: in place in lists, dictionaries and
// instances, by new tuples where a tuple holds one. Everything else stays the object that it is.
PyRef without_symbols(PyRef object);

}  // namespace cresset::frontend
