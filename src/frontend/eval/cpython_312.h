// Properties of CPython 3.12 alone (cpython.h).
#pragma once

#include "frontend/eval/since_312.h"

#define CRESSET_OPCODES "frontend/eval/opcodes_312.def"
#define CRESSET_OPS_OF_VERSION "frontend/eval/ops_312.h"

// ---- Bytecode -------------------------------------------------------------------------------------------------------
#define INLINE_CACHE_ENTRIES_CONTAINS_OP 0
#define INLINE_CACHE_ENTRIES_JUMP_BACKWARD 0
#define INLINE_CACHE_ENTRIES_POP_JUMP 0
#define COMPARISON(oparg) ((oparg) >> 4)
#define COMPARISON_AS_BOOL(oparg) 0
static inline int reads_slot(int opcode) {
  return opcode == LOAD_FAST || opcode == LOAD_FAST_CHECK || opcode == LOAD_FAST_AND_CLEAR || opcode == DELETE_FAST;
}
#define BRANCHING_OPCODE(frame) _Py_OPCODE(*LAST_INSTRUCTION(frame))
enum {
  kMostThrown = 1,        // arguments of throw() that the evaluator handles itself: more cause a warning
  kUnitsAtEndOfLoop = 1,  // END_FOR: FOR_ITER passes over it when the iterator is exhausted
  kCloseGivesValue = 0,
  kCallableFirst = 0,  // NULL or a method's function, then the callable or its self
  kRestsAtNextInstruction = 0,
  kSendKeepsReceiver = 1,       // the return value of a delegate is pushed; END_SEND drops the delegate
  kGeneratorsConvertStops = 1,  // a generator's own bytecode converts StopIteration to a RuntimeError
  kEvaluatorDropsFrames = 1,    // the evaluator drops a frame that is evaluated to its end
};
#define BORROWED_RERAISE_STAR "CALL_INTRINSIC_2:1"
#define LOOK_UP_ATTRIBUTE _PyObject_LookupAttr
#define GENERATORS_KEEP_CODE_IN_FRAME 1  // the frame of a finished generator still has the code

// ---- Frames ---------------------------------------------------------------------------------------------------------
static inline PyObject* frame_function(const Frame* frame) { return frame->f_funcobj; }
#define FRAME_CODE(frame) ((frame)->f_code)
static inline void set_frame_code(Frame* frame, PyCodeObject* code) { frame->f_code = code; }
#define LAST_INSTRUCTION(frame) ((frame)->prev_instr)
static inline void set_frame_function(Frame* frame, PyFunctionObject* function) {
  frame->f_funcobj = (PyObject*)function;
}
static inline void start_fields(Frame* frame) { frame->return_offset = 0; }
static inline Frame* current_frame(PyThreadState* tstate) {
  return tstate->cframe != NULL ? tstate->cframe->current_frame : NULL;
}

// While a generator yields a value, or a delegate yields for it.
#define IS_SUSPENDED(state) ((state) == FRAME_SUSPENDED)
#define SUSPENDED_BY(oparg) FRAME_SUSPENDED

// ---- A run of the loop, as the thread sees it -----------------------------------------------------------------------
// CPython's own loop puts a C frame below its outermost frame; the only instruction of the C frame ends the loop. The
// loop here knows its outermost frame, and needs no C frame.
typedef struct {
  _PyCFrame cframe;
  _PyCFrame* outer;
} LoopEntry;

// -1: too deep in C, an exception is set; the loop is entered all the same.
static inline int enter_loop(PyThreadState* tstate, LoopEntry* entry, Frame* outermost, Frame* innermost) {
  entry->outer = tstate->cframe;
  entry->cframe = (_PyCFrame){innermost, entry->outer};
  outermost->previous = entry->outer->current_frame;
  tstate->cframe = &entry->cframe;
  if (LIKELY(_Py_EnterRecursiveCallTstate(tstate, "") == 0)) return 0;
  tstate->c_recursion_remaining--;
  return -1;
}
static inline void leave_loop(PyThreadState* tstate, LoopEntry* entry) {
  tstate->cframe = entry->outer;
  _Py_LeaveRecursiveCallTstate(tstate);
}
static inline void make_current(PyThreadState* tstate, LoopEntry* entry, Frame* frame) {
  (void)tstate;
  entry->cframe.current_frame = frame;
}
#define TRACED(entry) 0u
static inline uintptr_t monitoring_version(PyThreadState* tstate) { return tstate->interp->monitoring_version; }
// The plain form of the instruction behind KW_NAMES: CPython's loop cannot be entered between the two.
#define UNWATCHED(opcode) ((opcode) == INSTRUMENTED_CALL ? CALL : (opcode))

static inline int wants_attention(PyThreadState* tstate) {
  return _Py_atomic_load_relaxed(&tstate->interp->ceval.eval_breaker);
}

// ---- Objects --------------------------------------------------------------------------------------------------------
// The code of any generator, borrowed.
static inline PyCodeObject* generator_code(PyObject* generator) {
  return ((_PyInterpreterFrame*)((PyGenObject*)generator)->gi_iframe)->f_code;
}
// An object whose class manages its dictionary has either inline values or a dictionary.
static inline PyDictValues* inline_values(PyObject* object) {
  const PyDictOrValues both = *_PyObject_DictOrValuesPointer(object);
  return _PyDictOrValues_IsValues(both) ? _PyDictOrValues_GetValues(both) : NULL;
}
static inline PyObject* managed_dict(PyObject* object) {
  const PyDictOrValues both = *_PyObject_DictOrValuesPointer(object);
  return _PyDictOrValues_IsValues(both) ? NULL : _PyDictOrValues_GetDict(both);
}
