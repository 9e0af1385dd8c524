// Containers that a call may find changed: what it does to them is told from what they held before.
#pragma once

#include "frontend/c_functions.h"

namespace cresset::frontend {

inline bool is_snapshot_container(PyObject* object) { return is_container(object) && !PyTuple_Check(object); }

}  // namespace cresset::frontend
