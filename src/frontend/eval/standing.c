#include "frontend/eval/standing.h"

#include "frontend/eval/helpers.h"

// The frames, linked; the innermost, or NULL.
static Frame* push_all(PyThreadState* tstate, const CressetFrameImage* images, int count, Frame** outermost) {
  Frame* innermost = NULL;
  for (int i = 0; i < count; i++) {
    PyFunctionObject* function = (PyFunctionObject*)Py_NewRef(images[i].function);
    Frame* frame = push_frame(tstate, function, images[i].code, Py_XNewRef(images[i].names));
    if (frame == NULL) return innermost;
    cresset_fill_frame(frame, &images[i]);
    frame->previous = innermost;
    if (i == 0) *outermost = frame;
    innermost = frame;
  }
  return innermost;
}

static void drop_all(PyThreadState* tstate, Frame* innermost, const Frame* outermost) {
  for (int is_last = innermost == NULL; !is_last;) {
    Frame* previous = innermost->previous;
    is_last = innermost == outermost;
    drop_frame(tstate, innermost);
    innermost = previous;
  }
}

PyObject* cresset_eval_perform_in(const CressetFrameImage* images, int count, PyObject* (*perform)(void* context),
                                  CressetSlotChanged changed, void* context) {
  PyThreadState* tstate = PyThreadState_Get();
  Frame* outermost = NULL;
  Frame* innermost = push_all(tstate, images, count, &outermost);
  PyObject* result = NULL;
  if (innermost != NULL && !PyErr_Occurred()) {
    LoopEntry entry;
    if (enter_loop(tstate, &entry, outermost, innermost) == 0) result = perform(context);
    leave_loop(tstate, &entry);
    int at = count - 1;
    for (Frame* frame = innermost; at >= 0; frame = frame->previous, at--)
      for (int slot = 0; slot < images[at].slot_count; slot++)
        if (frame->localsplus[slot] != images[at].slots[slot]) changed(context, at, slot, frame->localsplus[slot]);
  }
  drop_all(tstate, innermost, outermost);
  return result;
}
