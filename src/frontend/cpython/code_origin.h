// Whether a source file belongs to torch, to cresset, or to the program.
#pragma once

#include <Python.h>

#include <string_view>

namespace cresset::frontend {

// The path of a code object's file within the package ("nn/modules/module.py"); empty for other files.
std::string_view path_in_torch(PyObject* filename);
std::string_view path_in_cresset(PyObject* filename);

}  // namespace cresset::frontend
