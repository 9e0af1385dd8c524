// Bindings for python/cresset/_polyfills/control_flow.py, which captures control-flow operators
// (bridge/capture/control_flow.h).
#pragma once

#include <Python.h>

namespace cresset::frontend {

void add_control_flow_functions(PyObject* module);

}  // namespace cresset::frontend
