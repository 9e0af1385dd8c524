// The vocabulary of ops_*.h. Names are the variables of cresset_run_frames.
#pragma once

#define OP(name) op_##name:
#define PUSH(value)              \
  do {                           \
    PyObject* pushed_ = (value); \
    *sp++ = pushed_;             \
  } while (0)
#define POP() (*--sp)
#define TOP() (sp[-1])
#define SECOND() (sp[-2])
#define THIRD() (sp[-3])
#define PEEK(n) (sp[-(n)])
// The callable of a call, whose lowest two stack values are the callable and a method's self. kCallableFirst gives
// their order.
#define CALLABLE_OF(base) (kCallableFirst || (base)[0] == NULL ? (base)[!kCallableFirst] : (base)[0])
// Pushes a callable without a self.
#define PUSH_CALLABLE(value)                 \
  do {                                       \
    PyObject* callable_ = (value);           \
    PUSH(kCallableFirst ? callable_ : NULL); \
    PUSH(kCallableFirst ? NULL : callable_); \
  } while (0)
// Drops values. A slot above the top is empty, because a destructor may look at the frame.
#define DROP(count)                                 \
  do {                                              \
    for (int left_ = (count); left_ > 0; left_--) { \
      PyObject* dropped_ = POP();                   \
      *sp = NULL;                                   \
      Py_XDECREF(dropped_);                         \
    }                                               \
  } while (0)
#define DROP_TO(level) DROP((int)(sp - (level)))
// Replaces a value. The present content of the place is dropped, even if a hook or code of the operation has exchanged
// it meanwhile (hooks.h).
#define REPLACE_TOP(value)       \
  do {                           \
    PyObject* replaced_ = TOP(); \
    TOP() = (value);             \
    Py_XDECREF(replaced_);       \
  } while (0)
#define SKIP(count) (next_instr += (count))
#define CACHES(OPCODE) INLINE_CACHE_ENTRIES_##OPCODE

// Or'ed to each opcode, as TRACED is: 255 jumps to op_divert.
#define DIVERTED() ((activation->leave != 0) | (hooks->step != NULL) ? 255u : 0u)
#define LOAD_FRAME()                          \
  do {                                        \
    PyCodeObject* code_ = FRAME_CODE(frame);  \
    names = code_->co_names;                  \
    consts = code_->co_consts;                \
    first_instr = _PyCode_CODE(code_);        \
    next_instr = LAST_INSTRUCTION(frame) + 1; \
    locals = frame->localsplus;               \
    sp = locals + frame->stacktop;            \
    frame->stacktop = -1;                     \
    divert = DIVERTED();                      \
  } while (0)
#define SAVE_STACK() (frame->stacktop = (int)(sp - frame->localsplus))

#define FETCH()                           \
  do {                                    \
    LAST_INSTRUCTION(frame) = next_instr; \
    const Unit unit_ = *next_instr++;     \
    opcode = _Py_OPCODE(unit_);           \
    oparg = _Py_OPARG(unit_);             \
  } while (0)
#define NEXT()                                                \
  do {                                                        \
    FETCH();                                                  \
    goto* targets[(unsigned)opcode | TRACED(entry) | divert]; \
  } while (0)

// Puts the frame at rest, for code run by an instruction, which may look at the frame.
#define REST() \
  (SAVE_STACK(), activation->stack_top = sp, activation->instruction = (int)(LAST_INSTRUCTION(frame) - first_instr))
#define MOVE() (frame->stacktop = -1, divert = DIVERTED())
// The same for a hook, whose own code is not evaluated here.
#define AT_REST() (REST(), state->paused++)
#define MOVING() (state->paused--, MOVE())
// The frame continues in CPython's loop from the next instruction if a tool has begun to watch it. CPython's loop must
// come from an instruction of the line before, to notice the new line.
#define LEAVE_IF_WATCHED()                                                       \
  do {                                                                           \
    if (UNLIKELY(is_watched(tstate, FRAME_CODE(frame))) && !activation->leave) { \
      activation->leave = LEAVE_ALONE;                                           \
      TELL_UNSEEN();                                                             \
      divert = DIVERTED();                                                       \
    }                                                                            \
  } while (0)
#define TELL_UNSEEN()                    \
  do {                                   \
    if (LIKELY(hooks->unseen != NULL)) { \
      (void)AT_REST();                   \
      hooks->unseen(hooks->session);     \
      MOVING();                          \
    }                                    \
  } while (0)
// Calls a hook; a refusal raises.
#define TELL(hook, ...)                                                           \
  do {                                                                            \
    if (LIKELY(hooks->hook != NULL)) {                                            \
      (void)AT_REST();                                                            \
      const int reported_ = hooks->hook(hooks->session, activation, __VA_ARGS__); \
      MOVING();                                                                   \
      if (UNLIKELY(reported_ < 0)) goto error;                                    \
    }                                                                             \
  } while (0)
// The version of a module's dictionary (reported_reads.h); 0 for any other object.
#define REPORTED_VERSION(owner) \
  (hooks->reported != 0 && Py_IS_TYPE(owner, &PyModule_Type) ? reported_version(PyModule_GetDict(owner)) : 0)
#define REMEMBER_REPORTED(owner, version, segment, value)                     \
  do {                                                                        \
    if (hooks->reported == (segment) && REPORTED_VERSION(owner) == (version)) \
      remember_reported(hooks, next_instr, name, version, 0, value);          \
  } while (0)
// Asks a hook for an answer; `answer` is its action.
#define ASK(answer, hook, ...)                                     \
  do {                                                             \
    (void)AT_REST();                                               \
    answer = hooks->hook(hooks->session, activation, __VA_ARGS__); \
    MOVING();                                                      \
  } while (0)
// A frame starts, is resumed, or (with an exception set) is thrown into.
#define TELL_ENTER()                                                                 \
  do {                                                                               \
    if (LIKELY(hooks->enter_frame != NULL)) {                                        \
      PyObject *type_ = NULL, *value_ = NULL, *traceback_ = NULL;                    \
      if (mode == RUN_THROWING) PyErr_Fetch(&type_, &value_, &traceback_);           \
      (void)AT_REST();                                                               \
      const CressetAction entered_ = hooks->enter_frame(hooks->session, activation); \
      MOVING();                                                                      \
      if (entered_ < 0) {                                                            \
        Py_XDECREF(type_);                                                           \
        Py_XDECREF(value_);                                                          \
        Py_XDECREF(traceback_);                                                      \
        goto error;                                                                  \
      }                                                                              \
      if (type_ != NULL) PyErr_Restore(type_, value_, traceback_);                   \
      if (entered_ == CRESSET_NATIVE && mode != RUN_THROWING) {                      \
        activation->leave = LEAVE_WITH_CALLEES;                                      \
        divert = 255;                                                                \
      }                                                                              \
    }                                                                                \
  } while (0)
// Before an operator, unless all values are plain numbers and strings. Sets `result` when the hook answered.
#define BEFORE_OPERATOR(KIND, OPERATION, LEFT, RIGHT, GIVEN)              \
  do {                                                                    \
    if (LIKELY(hooks->before_operator != NULL)) {                         \
      const CressetOperator operator_ = {KIND, OPERATION, {LEFT, RIGHT}}; \
      CressetAction action_;                                              \
      ASK(action_, before_operator, &operator_, &result);                 \
      if (UNLIKELY(action_ < 0)) goto error;                              \
      if (action_ == CRESSET_RESULT) goto GIVEN;                          \
    }                                                                     \
  } while (0)

// Whether a value alone gives no reason to report an operator.
#define IS_UNREPORTED(VALUE) (is_plain(VALUE) && LIKELY(!hooks->tells_all))

// The same before f"{value:spec}", which may be replaced by a function call. COUNT: the number of its operands on the
// stack.
#define BEFORE_FORMAT(CONVERSION, VALUE, SPEC, COUNT, GIVEN)                            \
  do {                                                                                  \
    if (LIKELY(hooks->before_operator != NULL)) {                                       \
      const CressetOperator operator_ = {CRESSET_OP_FORMAT, CONVERSION, {VALUE, SPEC}}; \
      CressetAction action_;                                                            \
      ASK(action_, before_operator, &operator_, &result);                               \
      if (UNLIKELY(action_ < 0)) goto error;                                            \
      if (action_ == CRESSET_RESULT) goto GIVEN;                                        \
      if (action_ == CRESSET_INSTEAD) {                                                 \
        callable = result;                                                              \
        call_nargs = 0;                                                                 \
        implicit_args[call_nargs++] = VALUE;                                            \
        if ((SPEC) != NULL) implicit_args[call_nargs++] = SPEC;                         \
        call_base = sp - (COUNT);                                                       \
        then = CRESSET_THEN_PUSH;                                                       \
        goto implicit_call;                                                             \
      }                                                                                 \
    }                                                                                   \
  } while (0)

#define CHECK_ATTENTION()                         \
  do {                                            \
    if (UNLIKELY(wants_attention(tstate))) {      \
      if (cresset_attend(tstate) < 0) goto error; \
    }                                             \
  } while (0)
#define REPLACE_LOCAL(slot, value) \
  do {                             \
    PyObject* old_ = locals[slot]; \
    locals[slot] = (value);        \
    Py_XDECREF(old_);              \
  } while (0)

#define COMPARE_NUMBERS(a, b, operation) \
  ((operation) == Py_LT   ? (a) < (b)    \
   : (operation) == Py_LE ? (a) <= (b)   \
   : (operation) == Py_EQ ? (a) == (b)   \
   : (operation) == Py_NE ? (a) != (b)   \
   : (operation) == Py_GT ? (a) > (b)    \
                          : (a) >= (b))
// Replaces a symbolic string by its str before a comparison or a hash reads its characters.
#define LOOK_AT_STRING(place)                               \
  do {                                                      \
    if (UNLIKELY(Py_TYPE(place) == cresset_string_type)) {  \
      (void)AT_REST();                                      \
      const int looked_ = cresset_look_at_string(&(place)); \
      MOVING();                                             \
      if (UNLIKELY(looked_ < 0)) goto error;                \
    }                                                       \
  } while (0)
#define LOOK_AT_STRING_UNREPORTED(place) \
  if (Py_TYPE(place) == cresset_string_type && !((CressetString*)(place))->breaks_graph) LOOK_AT_STRING(place)
#define IS_CONTAINER(value) (PyList_CheckExact(value) || PyDict_CheckExact(value) || PyTuple_CheckExact(value))

#define TELL_CONTENTS(container) TELL(read_contents, container)

// For an instruction that takes items of an iterator on top of the stack. Where the iteration runs the program's code,
// a polyfill takes the items, and the instruction is repeated with the list. Inline caches have been skipped.
#define TAKE_ITEMS(OPCODE, TAKER, COUNT)                                                 \
  do {                                                                                   \
    if (LIKELY(hooks->before_call != NULL) && UNLIKELY(cresset_takes_items_of(TOP()))) { \
      callable = cresset_polyfills.TAKER;                                                \
      implicit_args[0] = TOP();                                                          \
      call_nargs = 1;                                                                    \
      items_wanted = (COUNT);                                                            \
      call_base = sp;                                                                    \
      then = CRESSET_THEN_AGAIN;                                                         \
      then_operand = (int)((unsigned)oparg << 8 | (OPCODE));                             \
      goto take_items;                                                                   \
    }                                                                                    \
  } while (0)

// Like TELL, with an exception set that the hook does not see.
#define TELL_MISSING(hook, ...)                                                   \
  do {                                                                            \
    if (LIKELY(hooks->hook != NULL)) {                                            \
      PyObject *type_, *value_, *traceback_;                                      \
      PyErr_Fetch(&type_, &value_, &traceback_);                                  \
      (void)AT_REST();                                                            \
      const int reported_ = hooks->hook(hooks->session, activation, __VA_ARGS__); \
      MOVING();                                                                   \
      if (reported_ < 0) {                                                        \
        Py_XDECREF(type_);                                                        \
        Py_XDECREF(value_);                                                       \
        Py_XDECREF(traceback_);                                                   \
        goto error;                                                               \
      }                                                                           \
      PyErr_Restore(type_, value_, traceback_);                                   \
    }                                                                             \
  } while (0)
// After a call: releases the names and values made for f(*args, **kwargs).
#define CLEAR_FLAT_ARGS()                                                  \
  do {                                                                     \
    if (flat_args != NULL) {                                               \
      cresset_free_flat(flat_args, call_nargs, PyTuple_GET_SIZE(kwnames)); \
      flat_args = NULL;                                                    \
      Py_DECREF(kwnames);                                                  \
    }                                                                      \
    kwnames = NULL;                                                        \
  } while (0)
