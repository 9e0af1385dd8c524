// Part of cresset_run_frames: calls. A callable that resolves to a Python function gets its frame in this loop; C code
// calls any other callable.
OP(CALL) {
  call_base = sp - oparg - 2;
  call_nargs = oparg + (call_base[kCallableFirst] != NULL);
  call_args = sp - call_nargs;
  callable = CALLABLE_OF(call_base);
  SKIP(CACHES(CALL));
  if (LIKELY(is_plain_function(callable) && kwnames == NULL && hooks->before_call == NULL)) {
    PyFunctionObject* function = (PyFunctionObject*)callable;
    PyCodeObject* code = (PyCodeObject*)function->func_code;
    const int special = CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_OPTIMIZED;
    if (LIKELY((code->co_flags & special) == CO_OPTIMIZED && code->co_argcount == call_nargs &&
               code->co_kwonlyargcount == 0)) {
      Frame* called = push_frame(tstate, function, code, NULL);  // takes the reference of the stack
      sp = call_base;
      if (UNLIKELY(called == NULL)) {
        while (call_nargs > 0) Py_DECREF(call_args[--call_nargs]);
        goto error;
      }
      int i = 0;
      for (; i < call_nargs; i++) called->localsplus[i] = call_args[i];
      for (; i < code->co_nlocalsplus; i++) called->localsplus[i] = NULL;
      then = CRESSET_THEN_PUSH;
      then_value = NULL;
      innermost = called;
      goto enter_function;
    }
  }
  if (kwnames != NULL) call_nargs -= PyTuple_GET_SIZE(kwnames);
  call_tuple = NULL;
  goto call;
}

OP(CALL_FUNCTION_EX) {
  if (oparg & 1) {
    TELL_CONTENTS(TOP());
    if (!PyDict_CheckExact(TOP())) {
      PyObject* dict = PyDict_New();
      if (dict == NULL) goto error;
      if (cresset_merge_keywords(PEEK(3 + kCallableFirst), dict, TOP()) < 0) {
        Py_DECREF(dict);
        goto error;
      }
      PyObject* mapping = TOP();
      TOP() = dict;
      Py_DECREF(mapping);
    }
    call_dict = TOP();
  } else {
    call_dict = NULL;
  }
  if (!(oparg & 1)) TAKE_ITEMS(CALL_FUNCTION_EX, list_of, -1);
  PyObject** place = sp - ((oparg & 1) ? 2 : 1);
  TELL_CONTENTS(*place);
  if (!PyTuple_CheckExact(*place)) {
    PyObject* tuple = cresset_star_arguments(CALLABLE_OF(place - 2), *place);
    if (tuple == NULL) goto error;
    Py_SETREF(*place, tuple);
  }
  call_tuple = *place;
  call_base = place - 2;
  callable = CALLABLE_OF(place - 2);
  call_nargs = PyTuple_GET_SIZE(call_tuple);
  call_args = ((PyTupleObject*)call_tuple)->ob_item;
  if (call_dict != NULL && PyDict_GET_SIZE(call_dict) > 0) {
    if (cresset_flatten_call(call_tuple, call_dict, &flat_args, &kwnames) < 0) goto error;
    if (flat_args != NULL) call_args = flat_args + 1;
  }
  goto call;
}

// Inputs: callable, call_args, call_nargs, kwnames; also call_tuple and call_dict for f(*args, **kwargs). In the latter
// case kwnames and flat_args are owned, NULL if not all keywords are strings.
call : {
  const int resolvable =
      call_tuple == NULL || call_dict == NULL || flat_args != NULL || PyDict_GET_SIZE(call_dict) == 0;
  Callee callee;
  int resolved = resolvable ? cresset_resolve(callable, &callee) : 0;
  if (resolved < 0) goto call_failed;
  Steps steps =
      call_tuple == NULL && kwnames == NULL ? steps_generator(callable, call_args, call_nargs) : STEPS_NOTHING;
  CressetAction action = CRESSET_RUN;
  if (LIKELY(hooks->before_call != NULL)) {
    const CressetCall reported = {callable, call_args, call_nargs, kwnames, (uint8_t)(resolved || steps)};
    ASK(action, before_call, &reported, &result);
    if (action < 0) {
      if (resolved) cresset_release_callee(&callee);
      goto call_failed;
    }
    if (action == CRESSET_RESULT) {
      if (resolved) cresset_release_callee(&callee);
      goto call_result;
    }
    if (call_tuple != NULL) {  // the hook may have replaced the operands on the stack
      call_tuple = call_base[2];
      if (call_dict != NULL) call_dict = call_base[3];
      const int failed = flat_args != NULL ? cresset_flatten_again(call_tuple, call_dict, &flat_args, &kwnames) : 0;
      if (failed < 0) {
        if (resolved) cresset_release_callee(&callee);
        goto call_failed;
      }
      call_nargs = PyTuple_GET_SIZE(call_tuple);
      call_args = flat_args != NULL ? flat_args + 1 : ((PyTupleObject*)call_tuple)->ob_item;
    }
    if (action == CRESSET_INSTEAD) {
      if (resolved) cresset_release_callee(&callee);
      callable = result;
      result = NULL;
      steps = STEPS_NOTHING;
      resolved = cresset_resolve(callable, &callee);
      if (resolved < 0) goto call_failed;
      action = CRESSET_RUN;
    }
  }
  if (resolved && action == CRESSET_RUN) {
    const int made = callee.make != NULL ? cresset_make_instance(&callee, call_args, call_nargs, kwnames) : 1;
    if (made <= 0) {
      result = callee.instance;
      callee.instance = NULL;
      cresset_release_callee(&callee);
      goto call_result;
    }
    const CallArguments arguments = {callee.head, callee.head_count, callee.partial_args, call_args,
                                     call_nargs,  kwnames,           callee.partial_dict};
    innermost = cresset_bind(tstate, callee.function, &arguments);
    if (innermost != NULL && LIKELY(hooks->read_default != NULL)) {
      (void)AT_REST();
      const int reported = cresset_tell_defaults(hooks, activation, callee.function, &arguments);
      MOVING();
      if (reported < 0) {
        drop_frame(tstate, innermost);
        cresset_release_callee(&callee);
        goto call_failed;
      }
    }
    if (LIKELY(innermost != NULL)) {
      then = callee.instance != NULL ? CRESSET_THEN_INSTANCE : CRESSET_THEN_PUSH;
      then_value = callee.instance;
      callee.instance = NULL;
      cresset_release_callee(&callee);
      CLEAR_FLAT_ARGS();
      DROP_TO(call_base);
      goto enter_function;
    }
    if (PyErr_Occurred()) {
      cresset_release_callee(&callee);
      goto call_failed;
    }
    if (callee.instance != NULL) {  // __init__ does not accept the arguments, and reports it itself
      result = cresset_call_init(&callee, call_args, call_nargs, kwnames);
      cresset_release_callee(&callee);
      goto call_result;
    }
  }
  if (steps && action == CRESSET_RUN) {
    then = steps == STEPS_CLOSING ? CRESSET_THEN_CLOSE : CRESSET_THEN_STEP;
    then_operand = (int)(sp - call_base);
    implicit_args[0] = steps == STEPS_ON && call_nargs == 2 ? call_args[1] : Py_None;
    implicit_args[1] = call_args[0];
    if (steps != STEPS_ON) {
      if (cresset_set_thrown(call_args + 1, call_nargs - 1) < 0) goto call_failed;
      mode = RUN_THROWING;
    }
    goto enter_generator;
  }
  if (resolved) cresset_release_callee(&callee);
  activation->instruction = (int)(LAST_INSTRUCTION(frame) - first_instr);
  activation->stack_top = sp;
  if (UNLIKELY(action == CRESSET_NATIVE)) cresset_eval_pause();
  result = call_tuple != NULL
               ? PyObject_Call(callable, call_tuple, call_dict)
               : PyObject_Vectorcall(callable, call_args, (size_t)call_nargs | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames);
  if (UNLIKELY(action == CRESSET_NATIVE)) cresset_eval_unpause();
  if (LIKELY(hooks->after_call != NULL)) {
    const CressetCall reported = {callable, call_args, call_nargs, kwnames, 0};
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (UNLIKELY(type != NULL)) {
      PyErr_NormalizeException(&type, &value, &traceback);
      if (traceback != NULL) PyException_SetTraceback(value, traceback);
    }
    int agreed;
    (void)AT_REST();
    agreed = hooks->after_call(hooks->session, activation, &reported, &result, value);
    MOVING();
    if (agreed < 0 || result != NULL) {
      if (agreed < 0) Py_CLEAR(result);
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(traceback);
    } else {
      PyErr_Restore(type, value, traceback);
    }
  }
}
call_result : CLEAR_FLAT_ARGS();
DROP_TO(call_base);
if (UNLIKELY(result == NULL)) goto error;
PUSH(result);
LEAVE_IF_WATCHED();
CHECK_ATTENTION();
NEXT();
call_failed : CLEAR_FLAT_ARGS();
goto error;

// A call not visible in the source: callable(*implicit_args[:call_nargs]). Operands above call_base are dropped, and
// the result is delivered as `then` requires.
take_items : if (items_wanted >= 0) {
  items_count = PyLong_FromSsize_t(items_wanted);
  if (items_count == NULL) goto error;
  implicit_args[call_nargs++] = items_count;
}
Py_INCREF(callable);
then_value = items_count;  // dropped with the call
items_count = NULL;
goto implicit_call_owned;
implicit_call : Py_INCREF(callable);
then_value = NULL;
implicit_call_owned : {
  CressetAction action = CRESSET_RUN;
  if (LIKELY(hooks->before_call != NULL)) {
    const CressetCall reported = {callable, implicit_args, call_nargs, NULL, 1};
    ASK(action, before_call, &reported, &result);
    if (action < 0) {
      Py_DECREF(callable);
      Py_CLEAR(then_value);
      goto error;
    }
  }
  if (action == CRESSET_RUN && is_plain_function(callable)) {
    const CallArguments arguments = {NULL, 0, NULL, implicit_args, call_nargs, NULL, NULL};
    innermost = cresset_bind(tstate, callable, &arguments);
    if (LIKELY(innermost != NULL)) {
      Py_DECREF(callable);
      DROP_TO(call_base);
      goto enter_function;
    }
    if (PyErr_Occurred()) {
      Py_DECREF(callable);
      Py_CLEAR(then_value);
      goto error;
    }
  }
  if (action != CRESSET_RESULT) {
    if (action == CRESSET_NATIVE) cresset_eval_pause();
    result = PyObject_Vectorcall(callable, implicit_args, (size_t)call_nargs, NULL);
    if (action == CRESSET_NATIVE) cresset_eval_unpause();
  }
  Py_DECREF(callable);
  DROP_TO(call_base);
  goto apply;
}

// Inputs: `innermost`, the new frame; then, then_operand, then_value. The operands of the call have left the stack.
enter_function : {
  Py_CLEAR(made_key);
  LAST_INSTRUCTION(frame) = next_instr - 1;
  activation->instruction = (int)(LAST_INSTRUCTION(frame) - first_instr);
  activation->stack_top = sp;
  CressetActivation* entered = push_activation(state, innermost);
  if (UNLIKELY(entered == NULL)) {
    drop_frame(tstate, innermost);
    Py_CLEAR(then_value);
    kwnames = NULL;
    goto error;
  }
  entered->continuation = (uint8_t)then;
  entered->continuation_operand = then_operand;
  entered->continuation_value = then_value;
  kwnames = NULL;
  SAVE_STACK();
  innermost->previous = frame;
  activation = entered;
  frame = innermost;
  make_current(tstate, &entry, frame);
  goto start_frame;
}
