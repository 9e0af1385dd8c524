// What the interpreter knows of its own, beside the frames that are evaluated.
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// Builtins as the interpreter made them, whatever stands among them by now: a dictionary, borrowed.
PyObject* cresset_eval_builtins(void);

// In between, garbage is collected only where somebody asks for it, though the collector is as enabled as before.
void cresset_eval_rest_collector(void);
void cresset_eval_wake_collector(void);

#ifdef __cplusplus
}
#endif
