// Synthetic stack: an operation in eager mode between two graph segments has copies of the program's frames below it.
// Code that inspects the stack needs them (sys._getframe, inspect, logging, warnings).
#pragma once

#include "frontend/eval/hooks.h"

#ifdef __cplusplus
extern "C" {
#endif

// Reports a value that an operation stored in a slot of a frame through f_locals (CPython 3.13 and up). Borrowed.
typedef void (*CressetSlotChanged)(void* context, int frame, int slot, PyObject* value);

// perform(context), with copies of the frames on the thread's stack, outermost first, including a generator's frames.
// NULL with an exception set.
PyObject* cresset_eval_perform_in(const CressetFrameImage* images, int count, PyObject* (*perform)(void* context),
                                  CressetSlotChanged changed, void* context);

#ifdef __cplusplus
}
#endif
