// Evaluation without a session: for tests and for debugging the evaluator.
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// Adds _eval_begin, _eval_end, _eval_unsupported and the functions of record.h to the module.
int cresset_eval_add_functions(PyObject* module);

#ifdef __cplusplus
}
#endif
