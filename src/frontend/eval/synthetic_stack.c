#include "frontend/eval/synthetic_stack.h"

#include "frontend/eval/helpers.h"

static void drop_down_to(PyThreadState* tstate, Frame* innermost, const Frame* below) {
  while (innermost != below) {
    Frame* previous = innermost->previous;
    drop_frame(tstate, innermost);
    innermost = previous;
  }
}

// The frames of the images, linked; returns the innermost. NULL: an exception is set.
static Frame* push_all(PyThreadState* tstate, const CressetFrameImage* images, int count, Frame** outermost) {
  Frame* innermost = NULL;
  for (int i = 0; i < count; i++) {
    Frame* frame = cresset_push_image(tstate, &images[i]);
    if (frame == NULL) {
      drop_down_to(tstate, innermost, NULL);
      return NULL;
    }
    frame->previous = innermost;
    if (i == 0) *outermost = frame;
    innermost = frame;
  }
  return innermost;
}

PyObject* cresset_eval_perform_in(const CressetFrameImage* images, int count, PyObject* (*perform)(void* context),
                                  CressetSlotChanged changed, void* context) {
  PyThreadState* tstate = PyThreadState_Get();
  Frame* outermost = NULL;
  Frame* innermost = push_all(tstate, images, count, &outermost);
  if (innermost == NULL) return NULL;
  LoopEntry entry;
  PyObject* result = enter_loop(tstate, &entry, outermost, innermost) == 0 ? perform(context) : NULL;
  leave_loop(tstate, &entry);
  int at = count - 1;
  for (Frame* frame = innermost; at >= 0; frame = frame->previous, at--)
    for (int slot = 0; slot < images[at].slot_count; slot++)
      if (frame->localsplus[slot] != images[at].slots[slot]) changed(context, at, slot, frame->localsplus[slot]);
  drop_down_to(tstate, innermost, outermost->previous);
  return result;
}
