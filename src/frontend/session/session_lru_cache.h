// Functions of `functools.lru_cache` which existed before the call. Their cached results are guarded. For arguments
// which vary, the evaluator runs the wrapped function, provided it only computes
// (python/cresset/_polyfills/functools.py).
#pragma once

#include <Python.h>

namespace cresset::frontend {

void add_cached_function_functions(PyObject* module);

}  // namespace cresset::frontend
