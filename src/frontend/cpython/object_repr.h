// Readable strings for objects, made without calling functions of the program: for guards, reasons, paths.
#pragma once

#include <Python.h>

#include <cstddef>
#include <string>

namespace cresset::frontend {

// A constant by its repr(), a class or Enum member by its name, any other object by its type. Also used in paths.
std::string key_text(PyObject* key);
// The string for the value of a guard: a non-constant is "another Tensor"; nullptr is "nothing".
std::string value_text(PyObject* value);
// The difference of an object from the container of a cache entry. then: its length; a tuple with its keys.
std::string change_of_length(size_t then, PyObject* now);
std::string change_of_keys(PyObject* then, PyObject* now);

}  // namespace cresset::frontend
