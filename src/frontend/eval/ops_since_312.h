// Part of cresset_run_frames: opcodes of CPython from 3.12 on.

JUMP_WHEN(POP_JUMP_IF_TRUE, Py_False, Py_True, oparg)
JUMP_WHEN(POP_JUMP_IF_FALSE, Py_True, Py_False, oparg)
JUMP_ON_NONE(POP_JUMP_IF_NONE, 1, oparg)
JUMP_ON_NONE(POP_JUMP_IF_NOT_NONE, 0, oparg)

// ---- The stack ------------------------------------------------------------------------------------------------------
OP(LOAD_FAST_CHECK) {
  PyObject* value = locals[oparg];
  if (UNLIKELY(value == NULL)) goto unbound_local;
  Py_INCREF(value);
  PUSH(value);
  NEXT();
}

// Starts a comprehension inlined into its function. A STORE_FAST restores the hidden variable, which may be NULL.
OP(LOAD_FAST_AND_CLEAR) {
  PUSH(locals[oparg]);
  locals[oparg] = NULL;
  NEXT();
}

OP(RETURN_CONST) {
  result = Py_NewRef(PyTuple_GET_ITEM(consts, oparg));
  goto returned;
}

OP(END_SEND) {
  PyObject* value = POP();
  PyObject* receiver = TOP();
  TOP() = value;
  Py_DECREF(receiver);
  NEXT();
}

// The stack: the delegate, the value sent last, the exception thrown into the delegate.
OP(CLEANUP_THROW) {
  PyObject* exception = TOP();
  if (!PyErr_GivenExceptionMatches(exception, PyExc_StopIteration)) {
    cresset_restore_exception(Py_NewRef(exception));
    goto unwind;
  }
  PyObject* value = Py_XNewRef(((PyStopIterationObject*)exception)->value);
  DROP(3);
  PUSH(Py_NewRef(Py_None));
  PUSH(value);
  NEXT();
}

// ---- Slices: the evaluator makes the key ----------------------------------------------------------------------------
OP(BINARY_SLICE) {
  made_key = PySlice_New(SECOND(), TOP(), NULL);
  if (made_key == NULL) goto error;
  call_base = sp - 3;
  goto subscript;
}

OP(STORE_SLICE) {
  made_key = PySlice_New(SECOND(), TOP(), NULL);
  if (made_key == NULL) goto error;
  call_base = sp - 4;
  goto store_subscript;
}

// ---- Names ----------------------------------------------------------------------------------------------------------
OP(LOAD_LOCALS) {
  if (frame->f_locals == NULL) {
    PyErr_SetString(PyExc_SystemError, "no locals");
    goto error;
  }
  PUSH(Py_NewRef(frame->f_locals));
  NEXT();
}

OP(LOAD_FROM_DICT_OR_GLOBALS) {
  PyObject* name = PyTuple_GET_ITEM(names, oparg);
  PyObject* mapping = TOP();
  CressetNamespace where = CRESSET_IN_LOCALS;
  PyObject* value = cresset_mapping_get(mapping, name);
  if (value == NULL) {
    if (PyErr_Occurred()) goto error;
    value = cresset_global(frame, name, &where);
    if (value == NULL) {
      if (where == CRESSET_IN_NOTHING) TELL_MISSING(read_name, where, frame->f_globals, name, NULL);
      goto error;
    }
    mapping = where == CRESSET_IN_GLOBALS ? frame->f_globals : frame->f_builtins;
  }
  PyObject* own = TOP();
  TOP() = value;
  Py_INCREF(mapping);
  Py_DECREF(own);
  made_key = mapping;  // kept for the hook
  TELL(read_name, where, mapping, name, value);
  Py_CLEAR(made_key);
  NEXT();
}

OP(LOAD_FROM_DICT_OR_DEREF) {
  PyObject* name = PyTuple_GET_ITEM(FRAME_CODE(frame)->co_localsplusnames, oparg);
  PyObject* cell = locals[oparg];
  PyObject* value = cresset_mapping_get(TOP(), name);
  if (value == NULL && PyErr_Occurred()) goto error;
  const int in_cell = value == NULL;
  if (in_cell) {
    value = PyCell_GET(cell);
    if (value == NULL) {
      cresset_unbound_cell(FRAME_CODE(frame), oparg);
      goto error;
    }
    Py_INCREF(value);
  }
  made_key = TOP();  // kept for the hook
  TOP() = value;
  if (in_cell) {
    TELL(read_cell, cell, oparg, value);
  } else {
    TELL(read_name, CRESSET_IN_LOCALS, made_key, name, value);
  }
  Py_CLEAR(made_key);
  NEXT();
}

// ---- super().name in one instruction: a super object is made and read, as written in the source ---------------------
OP(LOAD_SUPER_ATTR) {
  callable = THIRD();
  name_index = oparg >> 2;
  call_args = sp - 2;
  call_nargs = oparg & 2;  // without arguments it looks for them in the frame
  SKIP(CACHES(LOAD_SUPER_ATTR));
  CressetAction action = CRESSET_RUN;
  const CressetCall reported = {callable, call_args, call_nargs, NULL, 0};
  if (LIKELY(hooks->before_call != NULL)) ASK(action, before_call, &reported, &result);
  if (UNLIKELY(action < 0)) goto error;
  if (action == CRESSET_INSTEAD) callable = result;
  if (action != CRESSET_RESULT) {
    activation->instruction = (int)(LAST_INSTRUCTION(frame) - first_instr);
    activation->stack_top = sp;
    if (UNLIKELY(action == CRESSET_NATIVE)) cresset_eval_pause();
    result = PyObject_Vectorcall(callable, call_args, (size_t)call_nargs, NULL);
    if (UNLIKELY(action == CRESSET_NATIVE)) cresset_eval_unpause();
    if (result == NULL) goto error;
    if (LIKELY(hooks->after_call != NULL)) {
      int agreed;
      ASK(agreed, after_call, &reported, &result, NULL);
      if (agreed < 0) {
        Py_CLEAR(result);
        goto error;
      }
    }
  }
  made_key = result;  // the super object; dropped when the attribute is there
  CressetAttributeRead read;
  AttributeResult found = {0};
  if (LIKELY(Py_IS_TYPE(made_key, &PySuper_Type))) {
    cresset_load_attribute(made_key, PyTuple_GET_ITEM(names, name_index), 0, &read, &found);
    if (found.value == NULL) {
      TELL_MISSING(read_attribute, &read);
      goto error;
    }
    result = found.value;
    if (LIKELY(hooks->read_attribute != NULL)) {
      int agreed;
      ASK(agreed, read_attribute, &read);
      if (agreed < 0) {
        Py_CLEAR(result);
        goto error;
      }
    }
  } else {
    result = PyObject_GetAttr(made_key, PyTuple_GET_ITEM(names, name_index));
    if (result == NULL) goto error;
  }
  Py_CLEAR(made_key);
  DROP(3);
  if (oparg & 1) {
    PUSH_CALLABLE(result);
  } else {
    PUSH(result);
  }
  NEXT();
}

// ---- Intrinsics -----------------------------------------------------------------------------------------------------
OP(CALL_INTRINSIC_1) {
  PyObject* value = TOP();
  switch (oparg) {
    case INTRINSIC_PRINT:
      result = cresset_print_expression(value) == 0 ? Py_NewRef(Py_None) : NULL;
      break;
    case INTRINSIC_IMPORT_STAR:
      // Only at module level or in a class body: the names are a mapping.
      result = cresset_import_star(frame->f_locals, value) == 0 ? Py_NewRef(Py_None) : NULL;
      break;
    case INTRINSIC_STOPITERATION_ERROR:
      result = cresset_leaving_generator(FRAME_CODE(frame), value);
      break;
    case INTRINSIC_UNARY_POSITIVE:
      if (!IS_UNREPORTED(value)) BEFORE_OPERATOR(CRESSET_OP_UNARY, '+', value, NULL, unary_done);
      result = PyNumber_Positive(value);
      break;
    case INTRINSIC_LIST_TO_TUPLE:
      result = PyList_AsTuple(value);
      break;
    default:
      result = cresset_intrinsic(1, oparg, value, value);
  }
  goto unary_done;
}

OP(CALL_INTRINSIC_2) {
  result = oparg == INTRINSIC_PREP_RERAISE_STAR ? cresset_prepare_reraise_star(SECOND(), TOP())
                                                : cresset_intrinsic(2, oparg, SECOND(), TOP());
  if (result == NULL) goto error;
  DROP(2);
  PUSH(result);
  NEXT();
}
