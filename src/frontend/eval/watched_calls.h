// A function whose calls somebody wants to answer, though nothing is evaluated. C types only.
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// Calls of the function by C code and by CPython's evaluator are `call`'s from now on, which has to have the same come
// of them; frames of it that are evaluated here are the function's own. One function in the process. What called it
// before; NULL, with an exception set or without, where that is not CPython.
vectorcallfunc cresset_eval_watch_calls(PyObject* function, vectorcallfunc call);
// Calls are the function's own again, unless somebody else answers them.
void cresset_eval_unwatch_calls(PyObject* function);

#ifdef __cplusplus
}
#endif
