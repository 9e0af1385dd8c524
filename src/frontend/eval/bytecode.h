// Properties of a version's instructions, for the evaluator and its sessions. C and C++.
//
// The columns of opcodes_3xx.def are X(name, operands, flow). Operands: the number of the instruction's own values on
// the stack when a hook causes a graph break in it, before its result is there; may use `oparg`. Flow: the next place
// of evaluation.
#pragma once

#include <Python.h>
#include <opcode.h>

typedef enum {
  GOES_ON = 0,
  MAY_GO_FORWARD,  // or by oparg; the instruction decides
  MAY_GO_BACKWARD,
  GOES_FORWARD,  // always
  GOES_BACKWARD,
  ENDS,
} CressetFlow;

// A jump that leaves the tested value on the stack when it is taken, and its truth.
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

// Frames of this code never seem to have begun: sys._getframe, tracebacks and warnings skip them. The last instruction
// counts as the first traceable, because CPython 3.12 inspects code without any traceable instruction again and again.
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

// Whether truth is the result of an instruction of its own. If not, the instruction is a jump, repeated on the outcome.
static inline int cresset_truth_is_result(void) {
#ifdef TO_BOOL
  return 1;
#else
  return 0;
#endif
}

// Whether the lowest stack value of a call is the callable, followed by NULL or its self.
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

// The first instruction of a call without keyword names; its argument counts the arguments in the source text.
static inline int cresset_begins_call(int opcode) {
#ifdef PRECALL
  return opcode == PRECALL;
#else
  return opcode == CALL;
#endif
}
