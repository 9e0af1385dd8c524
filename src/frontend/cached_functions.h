// Functions of functools.lru_cache that were there before: what they keep is a fact, and what they give for numbers
// that vary is computed by their code, where that does nothing but compute (python/cresset/_cached.py).
#pragma once

#include <Python.h>

namespace cresset::frontend {

void add_cached_function_functions(PyObject* module);

}  // namespace cresset::frontend
