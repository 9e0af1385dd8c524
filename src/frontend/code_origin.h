// Whose code a file is: torch's, ours, or the program's.
#pragma once

#include <Python.h>

#include <string_view>

namespace cresset::frontend {

// A code object's file within the package ("nn/modules/module.py"); empty when it is elsewhere.
std::string_view path_in_torch(PyObject* filename);
std::string_view path_in_cresset(PyObject* filename);

}  // namespace cresset::frontend
