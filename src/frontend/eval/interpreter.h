// Services of the interpreter beside the evaluated frames.
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// The builtins as the interpreter created them, without later changes: a dictionary, borrowed.
PyObject* cresset_eval_builtins(void);

// Between rest and wake, garbage is collected only on request, though the collector counts as enabled.
void cresset_eval_rest_collector(void);
void cresset_eval_wake_collector(void);

#ifdef __cplusplus
}
#endif
