#include "frontend/eval/stack_walk.h"

#include "frontend/eval/cpython.h"

static int describe(Frame* frame, CressetStackFrame* out) {
  while (frame != NULL && _PyFrame_IsIncomplete(frame)) frame = frame->previous;
  if (frame == NULL) return 0;
  out->frame = frame;
  out->code = FRAME_CODE(frame);
  out->instruction = frame_last(frame) * (int)sizeof(Unit);
  return 1;
}

int cresset_stack_top(CressetStackFrame* out) {
  PyThreadState* tstate = PyGILState_GetThisThreadState();
  return tstate != NULL && describe(current_frame(tstate), out);
}

int cresset_stack_next(CressetStackFrame* at) { return describe(((Frame*)at->frame)->previous, at); }
