// What people read of objects, by no function of the program's: texts of guards, reasons, paths.
#pragma once

#include <Python.h>

#include <string>

namespace cresset::frontend {

// A constant by its repr(), a class and a member of an Enum by their names, others by their types. In paths, too.
std::string key_text(PyObject* key);
// Of the value of a fact: what is no constant is "another Tensor"; nullptr: "nothing".
std::string value_text(PyObject* value);

}  // namespace cresset::frontend
