// Part of cresset_run_frames: the end of an instruction, of a frame and of the loop.
op_unknown : PyErr_Format(PyExc_SystemError, "unknown opcode %d", opcode);
goto error;

// The session asked to leave this frame, or a trace function was set: CPython's own evaluator continues it. CPython can
// enter a frame at any instruction; the instruction after KW_NAMES or EXTENDED_ARG never comes here.
op_divert : {
  if (UNLIKELY(hooks->step != NULL && !activation->leave && !TRACED(entry))) {
    (void)AT_REST();
    const int reported = hooks->step(hooks->session, activation);
    MOVING();
    if (UNLIKELY(reported < 0)) goto error;
    if (!activation->leave) goto* targets[opcode];
  }
op_watched:
  if (!activation->leave) TELL_UNSEEN();
  next_instr--;
  LAST_INSTRUCTION(frame) = next_instr - 1;
  hand_frame_over(frame);
  SAVE_STACK();
  leave_python(tstate);
  gone_caller = frame->previous;
  gone_function = Py_NewRef(activation->function);
  gone_code = Py_NewRef(activation->code);
  make_current(tstate, &entry, gone_caller);
  const int with_callees = activation->leave == LEAVE_WITH_CALLEES;
  if (with_callees) cresset_eval_pause();
  result = cresset_native_frame(tstate, frame, 0);
  if (with_callees) cresset_eval_unpause();
  is_gone = kEvaluatorDropsFrames;
  if (!is_gone) {
    make_current(tstate, &entry, frame);
    frame->previous = gone_caller;
  }
  if (UNLIKELY(hooks->leave_frame != NULL)) goto tell_left;
  goto left;
}

error : Py_CLEAR(made_key);
cresset_add_traceback(tstate, frame);
unwind : {
  kwnames = NULL;
  Handler handler;
  // Not prev_instr: RERAISE has set it back to the origin of the exception.
  if (!cresset_find_handler(FRAME_CODE(frame), (int)(next_instr - first_instr) - 1, &handler)) {
    DROP_TO(frame_stack(frame));
    SAVE_STACK();
    leave_python(tstate);
    goto unwound;
  }
  DROP_TO(frame_stack(frame) + handler.depth);
  if (handler.push_last) {
    PyObject* last = PyLong_FromLong(frame_last(frame));
    if (last == NULL) goto unwind;
    PUSH(last);
  }
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyException_SetTraceback(value, traceback != NULL ? traceback : Py_None);
  Py_XDECREF(traceback);
  Py_XDECREF(type);
  PUSH(value);
  next_instr = first_instr + handler.target;
  NEXT();
}

returned : SAVE_STACK();
leave_python(tstate);
if (LIKELY(hooks->leave_frame == NULL)) goto left;
goto tell_left;
unwound : result = NULL;
if (LIKELY(hooks->leave_frame == NULL)) goto left;
tell_left : {
  if (!is_gone) activation->instruction = frame_last(frame);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  state->paused++;
  const int reported = hooks->leave_frame(hooks->session, activation, result);
  state->paused--;
  if (reported < 0) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    Py_CLEAR(result);
    if (!is_gone && activation->is_generator) _PyFrame_GetGenerator(frame)->gi_frame_state = FRAME_EXECUTING;
  } else {
    PyErr_Restore(type, value, traceback);
  }
}

left : {
  if (LIKELY(hooks->return_to_c != NULL) && result != NULL && !is_plain(result) &&
      (activation->continuation == CRESSET_THEN_RETURN_TO_C || activation->continuation == CRESSET_THEN_BRANCH)) {
    state->paused++;
    PyObject* returned = hooks->return_to_c(hooks->session, activation, result);
    state->paused--;
    Py_SETREF(result, returned);
  }
  then = activation->continuation;
  then_operand = activation->continuation_operand;
  then_value = activation->continuation_value;
  PyObject* gone_generator = activation->is_generator ? activation->generator : NULL;  // the caller keeps it
  pop_activation(state);
  activation = state->current;
  Frame* gone = is_gone ? NULL : frame;
  const int is_last = frame == outermost;
  if (is_last) {
    leave_loop(tstate, &entry);
    if (!kEvaluatorDropsFrames) gone = NULL;
  } else {
    frame = is_gone ? gone_caller : frame->previous;
    make_current(tstate, &entry, frame);
  }
  is_gone = 0;
  int yielded = gone_generator != NULL && IS_SUSPENDED(((PyGenObject*)gone_generator)->gi_frame_state);
  if (LIKELY(gone != NULL)) {
    if (gone_generator == NULL) {
      drop_frame(tstate, gone);
    } else {
      yielded = cresset_leave_generator(tstate, gone, result == NULL);
    }
  }
  Py_CLEAR(gone_function);
  Py_CLEAR(gone_code);
  if (is_last) return result;
  LOAD_FRAME();
  LEAVE_IF_WATCHED();
  if (LIKELY(gone_generator == NULL)) goto apply;
  oparg = then_operand;
  if (then == CRESSET_THEN_SEND) {
    if (result == NULL) goto error;
    if (!yielded) goto sent_return;
    PUSH(result);
    NEXT();
  }
  if (then == CRESSET_THEN_CLOSE) {
    result = cresset_closed(gone_generator, result, yielded);
    call_base = sp - then_operand;
    goto call_result;
  }
  if (then == CRESSET_THEN_STEP) {
    if (result != NULL && !yielded) {
      if (result == Py_None) {
        PyErr_SetNone(PyExc_StopIteration);
      } else {
        _PyGen_SetStopIterationValue(result);
      }
      Py_CLEAR(result);
    }
    call_base = sp - then_operand;
    goto call_result;
  }
  if (result != NULL && !yielded) {
    Py_CLEAR(result);
    goto end_of_loop;
  }
  if (result == NULL) goto error;
  PUSH(result);
  TELL(read_next, SECOND(), result);
  NEXT();
}

// Delivers the result of a called frame, NULL with an exception set, as `then` requires.
apply : Py_CLEAR(made_key);
if (LIKELY(then == CRESSET_THEN_PUSH && result != NULL)) {
  PUSH(result);
  NEXT();
}
// size: switch
switch (then) {
  case CRESSET_THEN_DROP:
    if (result == NULL) goto error;
    Py_DECREF(result);
    NEXT();
  case CRESSET_THEN_INSTANCE:
    if (result != NULL && result != Py_None) {
      PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'", Py_TYPE(result)->tp_name);
      Py_CLEAR(result);
    }
    if (result == NULL) {
      Py_CLEAR(then_value);
      goto error;
    }
    Py_DECREF(result);
    PUSH(then_value);
    then_value = NULL;
    NEXT();
  case CRESSET_THEN_BRANCH:
    if (result != NULL && !PyBool_Check(result)) {
      PyErr_Format(PyExc_TypeError, "__bool__ should return bool, returned %.200s", Py_TYPE(result)->tp_name);
      Py_CLEAR(result);
    }
    if (result == NULL) goto error;
    opcode = BRANCHING_OPCODE(frame);
    oparg = then_operand;
    then_operand = result == Py_True;
    Py_DECREF(result);
    goto branch;
  case CRESSET_THEN_ATTRIBUTE: {
    PyObject* name = PyTuple_GET_ITEM(names, then_operand / 4);
    if (result != NULL) {
      Py_CLEAR(then_value);
      if (then_operand & 2) {  // LOAD_METHOD: the result is not a method
        PUSH_CALLABLE(result);
      } else {
        PUSH(result);
      }
      NEXT();
    }
    if ((then_operand & 1) && PyErr_ExceptionMatches(PyExc_AttributeError)) {
      PyErr_Clear();
      callable = cresset_missing_attribute(then_value);
      if (callable != NULL) {
        // The owner rests on the stack for the call, its own reference in then_value again.
        PUSH(Py_NewRef(then_value));
        implicit_args[0] = then_value;
        implicit_args[1] = name;
        call_nargs = 2;
        call_base = sp - 1;
        then_operand &= ~1;
        goto implicit_call_owned;
      }
      PyErr_SetObject(PyExc_AttributeError, name);
    }
    cresset_name_attribute_error(then_value, name);
    Py_CLEAR(then_value);
    goto error;
  }
  case CRESSET_THEN_BOOL: {
    const int truth = result != NULL ? PyObject_IsTrue(result) : -1;
    Py_CLEAR(result);
    if (truth < 0) goto error;
    PUSH(Py_NewRef((truth ^ then_operand) ? Py_True : Py_False));
    NEXT();
  }
  case CRESSET_THEN_ITERATOR:
    if (result != NULL && !PyIter_Check(result)) {
      PyErr_Format(PyExc_TypeError, "iter() returned non-iterator of type '%.100s'", Py_TYPE(result)->tp_name);
      Py_CLEAR(result);
    }
    if (result == NULL) goto error;
    PUSH(result);
    NEXT();
  case CRESSET_THEN_NEXT:
    oparg = then_operand;
    if (result == NULL) goto end_of_loop;
    PUSH(result);
    TELL(read_next, SECOND(), result);
    NEXT();
  case CRESSET_THEN_AGAIN: {
    Py_CLEAR(then_value);
    if (result == NULL) goto error;
    REPLACE_TOP(result);
    opcode = then_operand & 0xFF;
    oparg = (int)((unsigned)then_operand >> 8);
    next_instr -= cresset_cache_entries[opcode];
    LAST_INSTRUCTION(frame) = next_instr - 1;
    goto* targets[opcode];
  }
  case CRESSET_THEN_PUSH:
    goto error;
  default:
    Py_XDECREF(result);
    PyErr_Format(PyExc_SystemError, "nothing is known of continuation %d", then);
    goto error;
}
