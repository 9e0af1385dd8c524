// Evaluating without a session: for tests and for people who look into the evaluator.
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// Adds _eval_begin, _eval_end, _eval_unsupported and what record.h has to the module.
int cresset_eval_add_functions(PyObject* module);

#ifdef __cplusplus
}
#endif
