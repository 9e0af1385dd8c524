// Settings of the process and of the thread that torch's C functions ask for and make: how many threads there are,
// which libraries and precisions may be used. Where a program asks, the answer is a guard; what it makes is made again
// by each call. The modes that change what operators mean are TorchState's.
#pragma once

#include <functional>

#include "frontend/py_ref.h"

namespace cresset::frontend {

enum class Setting : uint8_t { None, Asked, Made };
Setting setting_of(PyObject* callable);
void each_setting(const std::function<void(PyObject*)>& f);  // the functions that ask for one, or make one

}  // namespace cresset::frontend
