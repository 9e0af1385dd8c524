// Part of cresset_run_frames: truth and conditional jumps. A value other than a plain constant goes to `ask_truth`,
// which ends in `branch`: there the jump is decoded again from the instruction in progress. The jumps depend on the
// version.
#define JUMP_WHEN(OPCODE, FALLS, JUMPS, TARGET) \
  op_##OPCODE : {                               \
    PyObject* value = TOP();                    \
    if (LIKELY(value == FALLS)) {               \
      sp--;                                     \
      Py_DECREF(value);                         \
      SKIP(CACHES(POP_JUMP));                   \
      NEXT();                                   \
    }                                           \
    if (LIKELY(value == JUMPS)) {               \
      sp--;                                     \
      Py_DECREF(value);                         \
      SKIP(CACHES(POP_JUMP) + (TARGET));        \
      if ((TARGET) < 0) CHECK_ATTENTION();      \
      NEXT();                                   \
    }                                           \
    goto ask_truth;                             \
  }

#define JUMP_ON_NONE(OPCODE, WANTED, TARGET) \
  op_##OPCODE : {                            \
    PyObject* value = TOP();                 \
    const int is_none = value == Py_None;    \
    SKIP(CACHES(POP_JUMP));                  \
    TELL(read_is, value, Py_None, is_none);  \
    DROP(1);                                 \
    if (is_none == (WANTED)) {               \
      SKIP(TARGET);                          \
      if ((TARGET) < 0) CHECK_ATTENTION();   \
    }                                        \
    NEXT();                                  \
  }

OP(UNARY_NOT) { goto ask_truth; }

ask_truth : {
  PyObject* value = TOP();
  int truth;
  if (value == Py_True || value == Py_False || value == Py_None) {
    truth = value == Py_True;
  } else if (is_plain(value)) {
    truth = PyObject_IsTrue(value);
  } else if (IS_CONTAINER(value) || PyAnySet_CheckExact(value)) {
    const Py_ssize_t length = PyObject_Length(value);
    TELL(read_length, value, length);
    truth = length > 0;
  } else {
    truth = CRESSET_TRUTH_RUN;
    if (LIKELY(hooks->truth != NULL)) ASK(truth, truth, value);
    if (truth == CRESSET_TRUTH_RUN) {
      PyNumberMethods* numbers = Py_TYPE(value)->tp_as_number;
      if (numbers != NULL && numbers->nb_bool == cresset_known.truth) {
        callable = cresset_python_method(value, cresset_names.__bool__);
        if (callable != NULL) {
          implicit_args[0] = value;
          call_nargs = 1;
          call_base = KEEPS_OPERAND(opcode) ? sp : sp - 1;
          then = CRESSET_THEN_BRANCH;
          then_operand = oparg;
          goto implicit_call;
        }
      }
      truth = PyObject_IsTrue(value);
    }
  }
  if (truth < 0) goto error;
  if (!KEEPS_OPERAND(opcode)) DROP(1);
  then_operand = truth;
  goto branch;
}
