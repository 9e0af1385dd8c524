// The thread's Python frames, innermost first, read without making frame objects and without the GIL: only the thread
// itself changes its frames, and a frame on the stack keeps its code.
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  void* frame;
  PyCodeObject* code;  // borrowed
  int instruction;     // offset in bytes, what PyCode_Addr2Line takes
} CressetStackFrame;

// 0: the thread runs no Python.
int cresset_stack_top(CressetStackFrame* out);
// The caller of `at`; 0 at the end.
int cresset_stack_next(CressetStackFrame* at);

#ifdef __cplusplus
}
#endif
