// Functions for CPython from 3.12 on, which libpython does not export.
#include "frontend/eval/cpython.h"

#if PY_VERSION_HEX >= 0x030C0000

int cresset_too_deep(PyThreadState* tstate) {
  if (tstate->recursion_headroom) {
    if (tstate->py_recursion_remaining < -50) Py_FatalError("Cannot recover from Python stack overflow.");
    return 0;
  }
  tstate->recursion_headroom++;
  PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
  tstate->recursion_headroom--;
  tstate->py_recursion_remaining++;
  return -1;
}

// A function that does nothing. Its frame never begins, so tools do not see it.
static PyObject* make_moment(void) {
  PyObject* globals = PyDict_New();
  PyObject* function = NULL;
  if (globals != NULL && PyDict_SetItemString(globals, "__builtins__", PyEval_GetBuiltins()) == 0) {
    function = PyRun_String("lambda: None", Py_eval_input, globals, globals);
  }
  Py_XDECREF(globals);
  if (function != NULL) cresset_hide_frames_of((PyCodeObject*)function_code(function));
  return function;
}

// Collection, requests for the GIL and asynchronous exceptions are handled by the first instruction of any frame in
// CPython's own loop. No function exported by libpython handles them.
int cresset_attend(PyThreadState* tstate) {
  static PyObject* moment;
  if (Py_MakePendingCalls() != 0) return -1;
  if (!wants_attention(tstate)) return 0;
  if (moment == NULL) {
    _PyFrameEvalFunction evaluator = tstate->interp->eval_frame;
    tstate->interp->eval_frame = NULL;
    moment = make_moment();
    tstate->interp->eval_frame = evaluator;
    if (moment == NULL) return -1;
  }
  PyFunctionObject* function = (PyFunctionObject*)Py_NewRef(moment);
  Frame* frame = push_frame(tstate, function, (PyCodeObject*)function->func_code, NULL);
  if (frame == NULL) return -1;
  hand_frame_over(frame);
  PyObject* nothing = _PyEval_EvalFrameDefault(tstate, frame, 0);
  Py_XDECREF(nothing);
  return nothing != NULL ? 0 : -1;
}

PyObject* cresset_leaving_generator(PyCodeObject* code, PyObject* exception) {
  const char* message = NULL;
  if (PyErr_GivenExceptionMatches(exception, PyExc_StopIteration)) {
    message = (code->co_flags & CO_ASYNC_GENERATOR) ? "async generator raised StopIteration"
              : (code->co_flags & CO_COROUTINE)     ? "coroutine raised StopIteration"
                                                    : "generator raised StopIteration";
  } else if ((code->co_flags & CO_ASYNC_GENERATOR) &&
             PyErr_GivenExceptionMatches(exception, PyExc_StopAsyncIteration)) {
    message = "async generator raised StopAsyncIteration";
  }
  if (message == NULL) return Py_NewRef(exception);
  PyObject* error = PyObject_CallFunction(PyExc_RuntimeError, "s", message);
  if (error == NULL) return NULL;
  PyException_SetCause(error, Py_NewRef(exception));
  PyException_SetContext(error, Py_NewRef(exception));
  return error;
}

#endif
