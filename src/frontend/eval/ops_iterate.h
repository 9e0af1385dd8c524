// Part of cresset_run_frames: iteration. Frames of generators and of Python's __next__ and __iter__ run in this loop.
OP(GET_ITER) {
  PyObject* iterable = TOP();
  if (!IS_CONTAINER(iterable)) {
    BEFORE_OPERATOR(CRESSET_OP_ITER, 0, iterable, NULL, iterator_given);
    if (Py_TYPE(iterable)->tp_iter == cresset_known.iter) {
      callable = cresset_python_method(iterable, cresset_names.__iter__);
      if (callable != NULL) {
        implicit_args[0] = iterable;
        call_nargs = 1;
        call_base = sp - 1;
        then = CRESSET_THEN_ITERATOR;
        goto implicit_call;
      }
    }
  }
  result = PyObject_GetIter(iterable);
  if (result != NULL && LIKELY(hooks->read_iterator != NULL)) {
    int reported;
    ASK(reported, read_iterator, iterable, result);
    if (reported < 0) Py_CLEAR(result);
  }
iterator_given:
  if (result == NULL) goto error;
  REPLACE_TOP(result);
  NEXT();
}

OP(GET_YIELD_FROM_ITER) {
  PyObject* iterable = TOP();
  if (PyCoro_CheckExact(iterable)) {
    if (!(FRAME_CODE(frame)->co_flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE))) {
      PyErr_SetString(PyExc_TypeError, "cannot 'yield from' a coroutine object in a non-coroutine generator");
      goto error;
    }
  } else if (!PyGen_CheckExact(iterable)) {
    PyObject* iterator = PyObject_GetIter(iterable);
    if (iterator == NULL) goto error;
    iterable = TOP();
    TOP() = iterator;
    if (LIKELY(hooks->read_iterator != NULL)) {
      int reported;
      ASK(reported, read_iterator, iterable, iterator);
      if (reported < 0) {
        Py_DECREF(iterable);
        goto error;
      }
    }
    Py_DECREF(iterable);
  }
  NEXT();
}

OP(FOR_ITER) {
  PyObject* iterator = TOP();
  SKIP(CACHES(FOR_ITER));
  PyTypeObject* type = Py_TYPE(iterator);
  if (LIKELY(hooks->before_operator != NULL) && type != &PyListIter_Type && type != &PyTupleIter_Type &&
      type != &PyRangeIter_Type) {
    const CressetOperator operator_ = {CRESSET_OP_NEXT, 0, {iterator, NULL}};
    CressetAction action;
    ASK(action, before_operator, &operator_, &result);
    if (UNLIKELY(action < 0)) goto error;
    if (action == CRESSET_RESULT) goto next_given;
    if (action == CRESSET_INSTEAD) {
      callable = result;
      goto next_in_python;
    }
  }
  if (type == &PyGen_Type && ((PyGenObject*)iterator)->gi_frame_state < FRAME_EXECUTING) {
    then = CRESSET_THEN_NEXT;
    then_operand = oparg;
    implicit_args[0] = Py_None;
    goto enter_generator;
  }
  if (type->tp_iternext == cresset_known.next) {
    callable = cresset_python_method(iterator, cresset_names.__next__);
    if (callable != NULL) {
    next_in_python:
      implicit_args[0] = iterator;
      call_nargs = 1;
      call_base = sp;
      then = CRESSET_THEN_NEXT;
      then_operand = oparg;
      goto implicit_call;
    }
  }
  result = type->tp_iternext(iterator);
next_given:
  if (LIKELY(result != NULL)) {
    PUSH(result);
    TELL(read_next, iterator, result);
    NEXT();
  }
end_of_loop:
  if (PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_StopIteration)) goto error;
    PyErr_Clear();
  }
  TELL(read_next, TOP(), NULL);
  DROP(1);
  SKIP(oparg + kUnitsAtEndOfLoop);
  NEXT();
}

OP(SEND) {
  PyObject* value = TOP();
  PyObject* receiver = SECOND();
  SKIP(CACHES(SEND));
  if ((PyGen_CheckExact(receiver) || PyCoro_CheckExact(receiver)) &&
      ((PyGenObject*)receiver)->gi_frame_state < FRAME_EXECUTING &&
      (value == Py_None || IS_SUSPENDED(((PyGenObject*)receiver)->gi_frame_state))) {
    then = CRESSET_THEN_SEND;
    then_operand = oparg;
    implicit_args[0] = value;
    goto enter_generator;
  }
  const PySendResult sent = PyIter_Send(receiver, value, &result);
  if (sent == PYGEN_ERROR) goto error;
  DROP(1);
  if (sent == PYGEN_RETURN) goto sent_return;
  PUSH(result);
  NEXT();
sent_return: {
  if (kSendKeepsReceiver) {
    PUSH(result);
  } else {
    REPLACE_TOP(result);
  }
  SKIP(oparg);
  NEXT();
}
}

// Resumes a generator with implicit_args[0]. FOR_ITER: the generator is on top of the stack; SEND: under the sent
// value; next() and send(): implicit_args[1]. RUN_THROWING: the exception that is set is raised in the generator.
enter_generator : {
  PyGenObject* generator = (PyGenObject*)(then == CRESSET_THEN_SEND   ? SECOND()
                                          : then == CRESSET_THEN_NEXT ? TOP()
                                                                      : implicit_args[1]);
  Frame* resumed = (Frame*)generator->gi_iframe;
  LAST_INSTRUCTION(frame) = next_instr - 1;
  activation->instruction = (int)(LAST_INSTRUCTION(frame) - first_instr);
  CressetActivation* entered = push_activation(state, resumed);
  if (entered == NULL) goto error;
  take_frame_over(resumed);
  if (then == CRESSET_THEN_SEND) {
    sp--;  // the value moves over
    resumed->localsplus[resumed->stacktop++] = implicit_args[0];
  } else {
    resumed->localsplus[resumed->stacktop++] = Py_NewRef(implicit_args[0]);
  }
  activation->stack_top = sp;
  SAVE_STACK();
  entered->is_generator = 1;
  entered->generator = (PyObject*)generator;
  entered->instruction = frame_last(resumed);
  entered->continuation = (uint8_t)then;
  entered->continuation_operand = then_operand;
  activation = entered;
  generator->gi_exc_state.previous_item = tstate->exc_info;
  tstate->exc_info = &generator->gi_exc_state;
  generator->gi_frame_state = FRAME_EXECUTING;
  resumed->previous = frame;
  frame = resumed;
  make_current(tstate, &entry, frame);
  if (mode == RUN_THROWING) {
    cresset_chain_thrown((PyObject*)generator);
    goto throw_into_frame;
  }
  goto start_frame;
}
