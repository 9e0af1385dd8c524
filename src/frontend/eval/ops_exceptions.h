// Part of cresset_run_frames: raising, handling, with.
OP(RAISE_VARARGS) {
  PyObject* cause = oparg == 2 ? POP() : NULL;
  PyObject* exception = oparg >= 1 ? POP() : NULL;
  if (cresset_raise(exception, cause)) goto unwind;
  goto error;
}

OP(RERAISE) {
  if (oparg) {
    // an index, because a varying number in a frame is a symbol, even here
    PyObject* last = PyNumber_Index(PEEK(oparg + 1));
    if (last == NULL) goto error;
    LAST_INSTRUCTION(frame) = first_instr + PyLong_AsLong(last);
    Py_DECREF(last);
  }
  cresset_restore_exception(POP());
  goto unwind;
}

OP(PUSH_EXC_INFO) {
  PyObject* value = POP();
  _PyErr_StackItem* handled = tstate->exc_info;
  PUSH(handled->exc_value != NULL ? handled->exc_value : Py_NewRef(Py_None));
  Py_INCREF(value);
  PUSH(value);
  handled->exc_value = value;
  NEXT();
}

OP(POP_EXCEPT) {
  _PyErr_StackItem* handled = tstate->exc_info;
  PyObject* old = handled->exc_value;
  PyObject* before = POP();
  handled->exc_value = before != Py_None ? before : NULL;  // restores the state before PUSH_EXC_INFO
  if (before == Py_None) Py_DECREF(before);
  Py_XDECREF(old);
  NEXT();
}

OP(CHECK_EXC_MATCH) {
  PyObject* type = TOP();
  if (cresset_check_except_type(type) < 0) goto error;
  const int matches = PyErr_GivenExceptionMatches(SECOND(), type);
  TOP() = Py_NewRef(matches ? Py_True : Py_False);
  Py_DECREF(type);
  NEXT();
}

OP(CHECK_EG_MATCH) {
  PyObject *match, *rest;
  if (cresset_match_exception_group(SECOND(), TOP(), &match, &rest) < 0) goto error;
  PyObject* type = POP();
  Py_DECREF(type);
  if (match == Py_None) {  // no match: the group stays unchanged
    Py_DECREF(rest);
    PUSH(match);
  } else {
    PyObject* whole = TOP();
    TOP() = rest;
    Py_DECREF(whole);
    PUSH(match);
    PyErr_SetHandledException(match);
  }
  NEXT();
}

OP(WITH_EXCEPT_START) {
  // The stack: __exit__, the last instruction, the exception handled before, the exception.
  PyObject* value = TOP();
  PyObject* exit = PEEK(4);
  PyObject* traceback = PyException_GetTraceback(value);
  Py_XDECREF(traceback);  // the exception keeps it
  implicit_args[1] = PyExceptionInstance_Class(value);
  implicit_args[2] = value;
  implicit_args[3] = traceback != NULL ? traceback : Py_None;
  callable = exit;
  call_args = implicit_args + 1;
  call_nargs = 3;
  call_base = sp;
  call_tuple = NULL;
  goto call;
}

#define BEFORE_WITH_BLOCK(OPCODE, ENTER, EXIT, PROTOCOL)                             \
  op_##OPCODE : {                                                                    \
    PyObject* manager = TOP();                                                       \
    PyObject* enter = cresset_special(manager, cresset_names.ENTER, PROTOCOL, NULL); \
    if (enter == NULL) goto error;                                                   \
    PyObject* exit = cresset_special(manager, cresset_names.EXIT, PROTOCOL, #EXIT);  \
    if (exit == NULL) {                                                              \
      Py_DECREF(enter);                                                              \
      goto error;                                                                    \
    }                                                                                \
    REPLACE_TOP(exit);                                                               \
    PUSH(enter);                                                                     \
    goto enter_block;                                                                \
  }
BEFORE_WITH_BLOCK(BEFORE_WITH, __enter__, __exit__, "context manager")
BEFORE_WITH_BLOCK(BEFORE_ASYNC_WITH, __aenter__, __aexit__, "asynchronous context manager")
#undef BEFORE_WITH_BLOCK

enter_block : callable = TOP();
call_args = implicit_args + 1;  // none; vectorcall may borrow the slot in front
call_nargs = 0;
call_base = sp - 1;
call_tuple = NULL;
goto call;
