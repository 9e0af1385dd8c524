// Part of cresset_run_frames: arithmetic, comparison, subscripts, formatting.
OP(BINARY_OP) {
  PyObject* left = SECOND();
  PyObject* right = TOP();
  SKIP(CACHES(BINARY_OP));
  if (UNLIKELY(hooks->tells_all)) goto reported_binary_op;
  if (PyLong_CheckExact(left) && PyLong_CheckExact(right) && IS_MEDIUM(left) && IS_MEDIUM(right)) {
    const long a = MEDIUM_VALUE(left), b = MEDIUM_VALUE(right);
    switch (oparg) {
      case NB_ADD:
      case NB_INPLACE_ADD:
        result = PyLong_FromLong(a + b);
        goto binary_done;
      case NB_SUBTRACT:
      case NB_INPLACE_SUBTRACT:
        result = PyLong_FromLong(a - b);
        goto binary_done;
      case NB_MULTIPLY:
      case NB_INPLACE_MULTIPLY:
        result = PyLong_FromLong(a * b);
        goto binary_done;
      default:
        break;
    }
  } else if (PyFloat_CheckExact(left) && PyFloat_CheckExact(right)) {
    const double a = PyFloat_AS_DOUBLE(left), b = PyFloat_AS_DOUBLE(right);
    switch (oparg) {
      case NB_ADD:
      case NB_INPLACE_ADD:
        result = PyFloat_FromDouble(a + b);
        goto binary_done;
      case NB_SUBTRACT:
      case NB_INPLACE_SUBTRACT:
        result = PyFloat_FromDouble(a - b);
        goto binary_done;
      case NB_MULTIPLY:
      case NB_INPLACE_MULTIPLY:
        result = PyFloat_FromDouble(a * b);
        goto binary_done;
      default:
        break;
    }
  } else if ((oparg == NB_ADD || oparg == NB_INPLACE_ADD) && PyUnicode_CheckExact(left) &&
             PyUnicode_CheckExact(right)) {
    goto add_strings;
  }
  if (UNLIKELY((hooks->before_operator != NULL || hooks->before_write != NULL || hooks->after_write != NULL) &&
               !(is_plain(left) && is_plain(right)))) {
    goto reported_binary_op;
  }
  result = binary_operation(oparg, left, right);
  goto binary_done;
}

binary_done : {
  DROP(1);
  REPLACE_TOP(result);
  if (UNLIKELY(result == NULL)) {
    sp--;
    goto error;
  }
  NEXT();
}

reported_binary_op : {
  PyObject* left = SECOND();
  PyObject* right = TOP();
  BEFORE_OPERATOR(CRESSET_OP_BINARY, oparg, left, right, binary_done);
  if (oparg < NB_INPLACE_ADD) {
    result = binary_operation(oparg, left, right);
    goto binary_done;
  }
  const CressetWrite write = {CRESSET_WRITE_IN_PLACE, left, NULL, right, oparg};
  TELL(before_write, &write);
  result = binary_operation(oparg, left, right);
  if (result != NULL && hooks->after_write != NULL) {
    int reported;
    ASK(reported, after_write, &write);
    if (reported < 0) Py_CLEAR(result);
  }
  goto binary_done;
}

add_strings : {
  PyObject* left = SECOND();
  PyObject* right = TOP();
  // `s += t`, `s = s + t`: with no other reference to s the string grows in place, a speed that loops rely on.
  const Unit next_unit = *next_instr;
  if (cresset_base_opcode[_Py_OPCODE(next_unit)] == STORE_FAST && locals[_Py_OPARG(next_unit)] == left && !divert) {
    locals[_Py_OPARG(next_unit)] = NULL;
    Py_DECREF(left);
    sp--;
    PyUnicode_Append(&TOP(), right);  // takes the reference in TOP, which becomes NULL on failure
    Py_DECREF(right);
    if (UNLIKELY(TOP() == NULL)) {
      sp--;
      goto error;
    }
    NEXT();
  }
  result = PyUnicode_Concat(left, right);
  goto binary_done;
}

#define UNARY(OPCODE, SIGN, FUNCTION)                                                            \
  op_##OPCODE : {                                                                                \
    PyObject* value = TOP();                                                                     \
    if (!IS_UNREPORTED(value)) BEFORE_OPERATOR(CRESSET_OP_UNARY, SIGN, value, NULL, unary_done); \
    result = FUNCTION(value);                                                                    \
    goto unary_done;                                                                             \
  }
UNARY(UNARY_NEGATIVE, '-', PyNumber_Negative)
UNARY(UNARY_INVERT, '~', PyNumber_Invert)
unary_done : {
  DROP(1);
  if (result == NULL) goto error;
  PUSH(result);
  NEXT();
}

OP(COMPARE_OP) {
  LOOK_AT_STRING_UNREPORTED(SECOND());
  LOOK_AT_STRING_UNREPORTED(TOP());
  PyObject* left = SECOND();
  PyObject* right = TOP();
  const int comparison = COMPARISON(oparg), as_bool = COMPARISON_AS_BOOL(oparg);
  SKIP(CACHES(COMPARE_OP));
  if (UNLIKELY(hooks->tells_all)) {
    BEFORE_OPERATOR(CRESSET_OP_COMPARE, comparison | as_bool, left, right, compare_done);
    result = PyObject_RichCompare(left, right, comparison);
  } else if (PyLong_CheckExact(left) && PyLong_CheckExact(right) && IS_MEDIUM(left) && IS_MEDIUM(right)) {
    const long a = MEDIUM_VALUE(left), b = MEDIUM_VALUE(right);
    const int holds = COMPARE_NUMBERS(a, b, comparison);
    result = Py_NewRef(holds ? Py_True : Py_False);
  } else if (PyFloat_CheckExact(left) && PyFloat_CheckExact(right)) {
    const double a = PyFloat_AS_DOUBLE(left), b = PyFloat_AS_DOUBLE(right);
    const int holds = COMPARE_NUMBERS(a, b, comparison);
    result = Py_NewRef(holds ? Py_True : Py_False);
  } else {
    if (!(is_plain(left) && is_plain(right)))
      BEFORE_OPERATOR(CRESSET_OP_COMPARE, comparison | as_bool, left, right, compare_done);
    result = PyObject_RichCompare(left, right, comparison);
  }
  if (result != NULL && LIKELY(hooks->read_compare != NULL)) {
    int reported;
    ASK(reported, read_compare, left, right, comparison, result);
    if (reported < 0) Py_CLEAR(result);
  }
compare_done:
  if (as_bool && result != NULL && !PyBool_Check(result)) goto compare_truth;
  DROP(1);
  REPLACE_TOP(result);
  if (UNLIKELY(result == NULL)) {
    sp--;
    goto error;
  }
  NEXT();
}

// The instruction needs the truth of the comparison's result. Its operands stay on the stack until the truth is known.
compare_truth : {
  made_key = result;
  result = NULL;
  int truth = CRESSET_TRUTH_RUN;
  if (!is_plain(made_key) && LIKELY(hooks->truth != NULL)) ASK(truth, truth, made_key);
  if (truth == CRESSET_TRUTH_RUN) {
    PyNumberMethods* numbers = Py_TYPE(made_key)->tp_as_number;
    callable = numbers != NULL && numbers->nb_bool == cresset_known.truth
                   ? cresset_python_method(made_key, cresset_names.__bool__)
                   : NULL;
    if (callable != NULL) {
      implicit_args[0] = made_key;
      call_nargs = 1;
      call_base = sp - 2;
      then = CRESSET_THEN_BRANCH;
      then_operand = oparg;
      goto implicit_call;
    }
    truth = PyObject_IsTrue(made_key);
  }
  Py_CLEAR(made_key);
  if (truth < 0) goto error;
  DROP(1);
  REPLACE_TOP(Py_NewRef(truth ? Py_True : Py_False));
  NEXT();
}

OP(IS_OP) {
  int same = CRESSET_TRUTH_RUN;
  if (LIKELY(hooks->same != NULL)) ASK(same, same, SECOND(), TOP());
  if (same < 0) goto error;
  if (same == CRESSET_TRUTH_RUN) same = SECOND() == TOP();
  const int holds = same ^ oparg;
  TELL(read_is, SECOND(), TOP(), holds);
  DROP(1);
  REPLACE_TOP(Py_NewRef(holds ? Py_True : Py_False));
  NEXT();
}

OP(CONTAINS_OP) {
  LOOK_AT_STRING_UNREPORTED(SECOND());
  SKIP(CACHES(CONTAINS_OP));
  PyObject* item = SECOND();
  PyObject* container = TOP();
  BEFORE_OPERATOR(CRESSET_OP_CONTAINS, oparg, container, item, contains_done);
  PySequenceMethods* sequence = Py_TYPE(container)->tp_as_sequence;
  if (sequence != NULL && sequence->sq_contains == cresset_known.contains) {
    callable = cresset_python_method(container, cresset_names.__contains__);
    if (callable != NULL) {
      implicit_args[0] = container;
      implicit_args[1] = item;
      call_nargs = 2;
      call_base = sp - 2;
      then = CRESSET_THEN_BOOL;
      then_operand = oparg;
      goto implicit_call;
    }
  }
  const int contains = PySequence_Contains(container, item);
  if (contains < 0) goto error;
  TELL(read_contains, container, item, contains);
  result = Py_NewRef((contains ^ oparg) ? Py_True : Py_False);
  goto contains_done;
contains_done:
  DROP(1);
  REPLACE_TOP(result);
  NEXT();
}

OP(BINARY_SUBSCR) {
  LOOK_AT_STRING(TOP());
  call_base = sp - 2;
  SKIP(CACHES(BINARY_SUBSCR));
  goto subscript;
}

// The container is at call_base. The key is in made_key if the instruction made it, else on top of the stack.
subscript : {
  PyObject* container = *call_base;
  PyObject* key = made_key != NULL ? made_key : TOP();
  if (PyLong_CheckExact(key) && IS_MEDIUM(key) && MEDIUM_VALUE(key) >= 0) {
    const Py_ssize_t index = MEDIUM_VALUE(key);
    if (PyList_CheckExact(container) && index < PyList_GET_SIZE(container) && LIKELY(!cresset_asks_for_lists)) {
      result = Py_NewRef(PyList_GET_ITEM(container, index));
      goto subscript_read;
    }
    if (PyTuple_CheckExact(container) && index < PyTuple_GET_SIZE(container)) {
      result = Py_NewRef(PyTuple_GET_ITEM(container, index));
      goto subscript_read;
    }
  }
  // The hook is asked about a list with a key other than an integer, because a tensor may have to give a number. It is
  // also asked about lists closed to graph segments.
  const int asked = !IS_CONTAINER(container) || (PyList_CheckExact(container) && cresset_asks_for_lists);
  const int any_key = PyDict_CheckExact(container)
                          ? Py_TYPE(key) == cresset_symint_type || cresset_is_hashed_in_python(key)
                          : !is_plain(key) && !PySlice_Check(key);
  if (asked || any_key) {
    BEFORE_OPERATOR(CRESSET_OP_SUBSCRIPT, 0, container, key, subscript_done);
    if (Py_TYPE(container)->tp_as_mapping != NULL &&
        Py_TYPE(container)->tp_as_mapping->mp_subscript == cresset_known.getitem) {
      callable = cresset_python_method(container, cresset_names.__getitem__);
      if (callable != NULL) {
        implicit_args[0] = container;
        implicit_args[1] = key;
        call_nargs = 2;
        then = CRESSET_THEN_PUSH;
        goto implicit_call;
      }
    }
  }
  result = PyObject_GetItem(container, key);
subscript_read:
  if (LIKELY(hooks->read_item != NULL)) {
    if (result != NULL || PyErr_ExceptionMatches(PyExc_LookupError)) {
      PyObject *type, *value, *traceback;
      PyErr_Fetch(&type, &value, &traceback);
      int reported;
      ASK(reported, read_item, container, key, result);
      if (reported < 0) {
        Py_CLEAR(result);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
      } else {
        PyErr_Restore(type, value, traceback);
      }
    }
  }
subscript_done:
  DROP_TO(call_base);
  Py_CLEAR(made_key);
  if (UNLIKELY(result == NULL)) goto error;
  PUSH(result);
  NEXT();
}

OP(STORE_SUBSCR) {
  LOOK_AT_STRING(TOP());
  PyObject* key = TOP();
  PyObject* container = SECOND();
  PyObject* value = THIRD();
  SKIP(CACHES(STORE_SUBSCR));
  call_base = sp - 3;
  if (PyList_CheckExact(container) && PyLong_CheckExact(key) && IS_MEDIUM(key) && hooks->before_write == NULL &&
      hooks->after_write == NULL) {
    const Py_ssize_t index = MEDIUM_VALUE(key);
    if (index >= 0 && index < PyList_GET_SIZE(container)) {
      PyObject* old = PyList_GET_ITEM(container, index);
      PyList_SET_ITEM(container, index, value);
      sp -= 3;
      Py_DECREF(old);
      Py_DECREF(key);
      Py_DECREF(container);
      NEXT();
    }
  }
  goto store_subscript;
}

// The value is at call_base, the container above it; the key as in `subscript`.
store_subscript : {
  PyObject* value = call_base[0];
  PyObject* container = call_base[1];
  PyObject* key = made_key != NULL ? made_key : TOP();
  if (Py_TYPE(container)->tp_as_mapping != NULL &&
      Py_TYPE(container)->tp_as_mapping->mp_ass_subscript == cresset_known.setitem) {
    callable = cresset_python_method(container, cresset_names.__setitem__);
    if (callable != NULL) {
      implicit_args[0] = container;
      implicit_args[1] = key;
      implicit_args[2] = value;
      call_nargs = 3;
      then = CRESSET_THEN_DROP;
      goto implicit_call;
    }
  }
  const CressetWrite write = {CRESSET_WRITE_ITEM, container, key, value, 0};
  int done = 0;  // whether the hook has done the write
  if (LIKELY(hooks->before_write != NULL)) {
    (void)AT_REST();
    done = hooks->before_write(hooks->session, activation, &write);
    MOVING();
    if (done < 0) goto error;
    if (done == CRESSET_WRITE_AS_CALL) {
      callable = cresset_polyfills.set_item;
      implicit_args[0] = container;
      implicit_args[1] = key;
      implicit_args[2] = value;
      call_nargs = 3;
      then = CRESSET_THEN_DROP;
      goto implicit_call;
    }
  }
  const int failed = done ? 0 : PyObject_SetItem(container, key, value);
  if (failed == 0) TELL(after_write, &write);
  DROP_TO(call_base);
  Py_CLEAR(made_key);
  if (failed) goto error;
  NEXT();
}

OP(DELETE_SUBSCR) {
  LOOK_AT_STRING(TOP());
  PyObject* key = TOP();
  PyObject* container = SECOND();
  if (Py_TYPE(container)->tp_as_mapping != NULL &&
      Py_TYPE(container)->tp_as_mapping->mp_ass_subscript == cresset_known.setitem) {
    callable = cresset_python_method(container, cresset_names.__delitem__);
    if (callable != NULL) {
      implicit_args[0] = container;
      implicit_args[1] = key;
      call_nargs = 2;
      call_base = sp - 2;
      then = CRESSET_THEN_DROP;
      then_value = NULL;
      goto implicit_call;
    }
  }
  const CressetWrite write = {CRESSET_WRITE_ITEM, container, key, NULL, 0};
  TELL(before_write, &write);
  const int failed = PyObject_DelItem(container, key);
  if (failed == 0) TELL(after_write, &write);
  DROP(2);
  if (failed) goto error;
  NEXT();
}
