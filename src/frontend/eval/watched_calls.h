// Answering the calls of a function without evaluation. C types only.
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// From now on `call` answers calls of the function from C code and from CPython's evaluator. It must have the same
// results as the function. Frames of the function evaluated here are unaffected. One function in the process. Returns
// the previous vectorcall. NULL, with or without an exception, where a tool has replaced CPython's vectorcall.
vectorcallfunc cresset_eval_watch_calls(PyObject* function, vectorcallfunc call);
// Restores the function's own vectorcall, unless a tool has replaced it since.
void cresset_eval_unwatch_calls(PyObject* function);

#ifdef __cplusplus
}
#endif
