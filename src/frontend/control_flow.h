// What python/cresset/_control_flow.py needs to capture operators of control flow (bridge/control_flow.h).
#pragma once

#include <Python.h>

namespace cresset::frontend {

void add_control_flow_functions(PyObject* module);

}  // namespace cresset::frontend
