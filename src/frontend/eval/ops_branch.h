// Part of cresset_run_frames: truth and conditional jumps. What is not a plain constant goes to `ask_truth`, which ends
// in `branch`: there the jump is decoded again from the instruction in progress.
#define JUMP_WHEN(OPCODE, FALLS, JUMPS, TARGET) \
  op_##OPCODE : {                               \
    PyObject* value = TOP();                    \
    if (LIKELY(value == FALLS)) {               \
      sp--;                                     \
      Py_DECREF(value);                         \
      NEXT();                                   \
    }                                           \
    if (LIKELY(value == JUMPS)) {               \
      sp--;                                     \
      Py_DECREF(value);                         \
      SKIP(TARGET);                             \
      if ((TARGET) < 0) CHECK_ATTENTION();      \
      NEXT();                                   \
    }                                           \
    goto ask_truth;                             \
  }
JUMP_WHEN(POP_JUMP_FORWARD_IF_TRUE, Py_False, Py_True, oparg)
JUMP_WHEN(POP_JUMP_FORWARD_IF_FALSE, Py_True, Py_False, oparg)
JUMP_WHEN(POP_JUMP_BACKWARD_IF_TRUE, Py_False, Py_True, -oparg)
JUMP_WHEN(POP_JUMP_BACKWARD_IF_FALSE, Py_True, Py_False, -oparg)
#undef JUMP_WHEN

#define JUMP_ON_NONE(OPCODE, WANTED, TARGET) \
  op_##OPCODE : {                            \
    PyObject* value = TOP();                 \
    const int is_none = value == Py_None;    \
    TELL(read_is, value, Py_None, is_none);  \
    sp--;                                    \
    Py_DECREF(value);                        \
    if (is_none == (WANTED)) {               \
      SKIP(TARGET);                          \
      if ((TARGET) < 0) CHECK_ATTENTION();   \
    }                                        \
    NEXT();                                  \
  }
JUMP_ON_NONE(POP_JUMP_FORWARD_IF_NONE, 1, oparg)
JUMP_ON_NONE(POP_JUMP_FORWARD_IF_NOT_NONE, 0, oparg)
JUMP_ON_NONE(POP_JUMP_BACKWARD_IF_NONE, 1, -oparg)
JUMP_ON_NONE(POP_JUMP_BACKWARD_IF_NOT_NONE, 0, -oparg)
#undef JUMP_ON_NONE

OP(JUMP_IF_TRUE_OR_POP) { goto ask_truth; }
OP(JUMP_IF_FALSE_OR_POP) { goto ask_truth; }
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
    if (UNLIKELY(hooks->truth != NULL)) ASK(truth, truth, value);
    if (truth == CRESSET_TRUTH_RUN) {
      PyNumberMethods* numbers = Py_TYPE(value)->tp_as_number;
      if (numbers != NULL && numbers->nb_bool == cresset_known.truth) {
        callable = cresset_python_method(value, cresset_names.__bool__);
        if (callable != NULL) {
          implicit_args[0] = value;
          call_nargs = 1;
          call_base = opcode == JUMP_IF_TRUE_OR_POP || opcode == JUMP_IF_FALSE_OR_POP ? sp : sp - 1;
          then = CRESSET_THEN_BRANCH;
          then_operand = oparg;
          goto implicit_call;
        }
      }
      truth = PyObject_IsTrue(value);
    }
  }
  if (truth < 0) goto error;
  if (opcode != JUMP_IF_TRUE_OR_POP && opcode != JUMP_IF_FALSE_OR_POP) {
    sp--;
    Py_DECREF(value);
  }
  then_operand = truth;
  goto branch;
}

// then_operand: the truth; opcode and oparg: the jump. The value that was asked is still there for the ..._OR_POP.
branch : switch (cresset_base_opcode[opcode]) {
  case POP_JUMP_FORWARD_IF_TRUE:
    if (then_operand) SKIP(oparg);
    NEXT();
  case POP_JUMP_FORWARD_IF_FALSE:
    if (!then_operand) SKIP(oparg);
    NEXT();
  case POP_JUMP_BACKWARD_IF_TRUE:
    if (then_operand) SKIP(-oparg);
    CHECK_ATTENTION();
    NEXT();
  case POP_JUMP_BACKWARD_IF_FALSE:
    if (!then_operand) SKIP(-oparg);
    CHECK_ATTENTION();
    NEXT();
  case UNARY_NOT:
    PUSH(Py_NewRef(then_operand ? Py_False : Py_True));
    NEXT();
  default:
    if (then_operand == (cresset_base_opcode[opcode] == JUMP_IF_TRUE_OR_POP)) {
      SKIP(oparg);
    } else {
      PyObject* value = POP();
      Py_DECREF(value);
    }
    NEXT();
}
