// What is done natively between two pieces has the program's frames below it, for code that looks at the stack
// (sys._getframe, inspect, logging, warnings).
#pragma once

#include "frontend/eval/hooks.h"

#ifdef __cplusplus
extern "C" {
#endif

// What an operation put into a slot of a frame by way of its f_locals (CPython 3.13 and up). Borrowed.
typedef void (*CressetSlotChanged)(void* context, int frame, int slot, PyObject* value);

// perform(context), with copies of the frames on the thread's stack, outermost first, also of a generator's. NULL with
// an exception set.
PyObject* cresset_eval_perform_in(const CressetFrameImage* images, int count, PyObject* (*perform)(void* context),
                                  CressetSlotChanged changed, void* context);

#ifdef __cplusplus
}
#endif
