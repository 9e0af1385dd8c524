// Process and thread settings which torch's C functions query and set: the number of threads, the permitted libraries
// and precisions. A query becomes a guard on the answer; each call repeats the setting. The modes which change the
// meaning of operators belong to TorchState.
#pragma once

#include <functional>

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

enum class Setting : uint8_t { None, Asked, Made };
Setting setting_of(PyObject* callable);
void each_setting(const std::function<void(PyObject*)>& f);  // the functions which query or set a setting

}  // namespace cresset::frontend
