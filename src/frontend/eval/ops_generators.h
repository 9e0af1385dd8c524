// Part of cresset_run_frames: yielding, awaiting.
OP(RETURN_GENERATOR) {
  // CPython runs frames of generator functions up to here (state.c, cresset_bind).
  PyErr_SetString(PyExc_SystemError, "the evaluator does not make generators");
  goto error;
}

OP(YIELD_VALUE) {
  result = POP();
  _PyFrame_GetGenerator(frame)->gi_frame_state = SUSPENDED_BY(oparg);
  hand_frame_over(frame);
  goto returned;
}

OP(RETURN_VALUE) {
  result = POP();
  goto returned;
}

OP(GET_AWAITABLE) {
  PyObject* iterator = cresset_awaitable(TOP(), oparg);
  if (iterator == NULL) goto error;
  REPLACE_TOP(iterator);
  NEXT();
}

OP(GET_AITER) {
  PyObject* iterator = cresset_async_iterator(TOP());
  if (iterator == NULL) goto error;
  REPLACE_TOP(iterator);
  NEXT();
}

OP(GET_ANEXT) {
  PyObject* awaitable = cresset_async_next(TOP());
  if (awaitable == NULL) goto error;
  PUSH(awaitable);
  NEXT();
}

OP(END_ASYNC_FOR) {
  PyObject* value = POP();
  if (PyErr_GivenExceptionMatches(value, PyExc_StopAsyncIteration)) {
    PyObject* iterator = POP();
    Py_DECREF(value);
    Py_DECREF(iterator);
    NEXT();
  }
  cresset_restore_exception(value);
  goto unwind;
}
