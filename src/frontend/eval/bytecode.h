// What the evaluator and those who watch it have to know of a version's instructions. C and C++.
//
// The columns of opcodes_3xx.def are X(name, operands, flow). Operands: how many values on the stack are the
// instruction's own where a hook may end a piece in it, when its result is not there yet; it may use `oparg`. Flow:
// where evaluation goes on behind it.
#pragma once

#include <Python.h>
#include <opcode.h>

typedef enum {
  GOES_ON = 0,
  MAY_GO_FORWARD,  // or by oparg, as the instruction decides
  MAY_GO_BACKWARD,
  GOES_FORWARD,  // always
  GOES_BACKWARD,
  ENDS,
} CressetFlow;

// A jump that, when it is taken, leaves what it asked about on the stack, and how it is taken.
static inline int cresset_jump_keeps_operand(int opcode) {
#ifdef JUMP_IF_TRUE_OR_POP
  return opcode == JUMP_IF_TRUE_OR_POP || opcode == JUMP_IF_FALSE_OR_POP;
#else
  (void)opcode;
  return 0;
#endif
}
static inline int cresset_jumps_when(int opcode) {
#ifdef JUMP_IF_TRUE_OR_POP
  return opcode == JUMP_IF_TRUE_OR_POP;
#else
  (void)opcode;
  return 0;
#endif
}

// Frames of this code are never seen to have begun: sys._getframe, tracebacks and warnings pass over them. Its last
// instruction stays what it is: code that has nothing to be watched is looked at again and again by CPython 3.12.
static inline void cresset_hide_frames_of(PyCodeObject* code) { code->_co_firsttraceable = (int)Py_SIZE(code) - 1; }

static inline int cresset_hides_frames_of(const PyCodeObject* code) {
  return code->_co_firsttraceable == (int)Py_SIZE(code) - 1;
}

static inline int cresset_names_keywords(int opcode) {
#ifdef KW_NAMES
  return opcode == KW_NAMES;
#else
  (void)opcode;
  return 0;
#endif
}

// Whether the truth that an instruction asks for is its result; else it is a jump, which is taken again on the outcome.
static inline int cresset_truth_is_result(void) {
#ifdef TO_BOOL
  return 1;
#else
  return 0;
#endif
}

// Whether a call's lowest value on the stack is what is called, and NULL or its self the next one.
static inline int cresset_callable_is_first(void) {
#ifdef CALL_KW
  return 1;
#else
  return 0;
#endif
}

static inline int cresset_is_call(int opcode) {
#ifdef CALL_KW
  if (opcode == CALL_KW) return 1;
#endif
  return opcode == CALL || opcode == CALL_FUNCTION_EX;
}

// The first instruction of a call without names; its argument counts those that the call's text shows.
static inline int cresset_begins_call(int opcode) {
#ifdef PRECALL
  return opcode == PRECALL;
#else
  return opcode == CALL;
#endif
}
