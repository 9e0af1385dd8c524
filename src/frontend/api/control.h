// Instructions of a program to the compiler during capture: the functions behind `cresset.disable`, `graph_break`,
// `comptime` and related functions (python/cresset/_api/control.py).
#pragma once

#include <Python.h>

#include <string>

namespace cresset::frontend {

void add_control_functions(PyObject* module);

}  // namespace cresset::frontend
