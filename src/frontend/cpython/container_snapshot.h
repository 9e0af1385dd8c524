// Containers which a call may modify: the modifications are recorded relative to their earlier contents.
#pragma once

#include "frontend/cpython/containers.h"

namespace cresset::frontend {

inline bool is_snapshot_container(PyObject* object) { return is_container(object) && !PyTuple_Check(object); }

}  // namespace cresset::frontend
