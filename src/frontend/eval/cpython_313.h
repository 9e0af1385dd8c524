// Properties of CPython 3.13 alone (cpython.h).
#pragma once

#include "frontend/eval/since_312.h"
#include "internal/pycore_optimizer.h"
#include "internal/pycore_setobject.h"
#include "internal/pycore_sysmodule.h"

#define CRESSET_OPCODES "frontend/eval/opcodes_313.def"
#define CRESSET_OPS_OF_VERSION "frontend/eval/ops_313.h"

// ---- Bytecode -------------------------------------------------------------------------------------------------------
#define INLINE_CACHE_ENTRIES_POP_JUMP 1
#define INLINE_CACHE_ENTRIES_JUMP_BACKWARD 1
#define INLINE_CACHE_ENTRIES_CALL_KW 0
#define COMPARISON(oparg) ((oparg) >> 5)
#define COMPARISON_AS_BOOL(oparg) ((oparg) & 16 ? CRESSET_AS_BOOL : 0)
static inline int reads_slot(int opcode) {
  return opcode == LOAD_FAST || opcode == LOAD_FAST_CHECK || opcode == LOAD_FAST_AND_CLEAR || opcode == DELETE_FAST;
}
#define BRANCHING_OPCODE(frame) TO_BOOL  // jumps find a bool on the stack, from here or from COMPARE_OP
enum {
  kMostThrown = 1,              // arguments of throw() that the evaluator handles itself: more cause a warning
  kUnitsAtEndOfLoop = 2,        // END_FOR, POP_TOP: FOR_ITER passes over them when the iterator is exhausted
  kCallableFirst = 1,           // the callable, then NULL or its self
  kRestsAtNextInstruction = 1,  // a frame at rest stores its next instruction, not its last
  kSendKeepsReceiver = 1,       // the return value of a delegate is pushed; END_SEND drops the delegate
  kGeneratorsConvertStops = 1,  // a generator's own bytecode converts StopIteration to a RuntimeError
  kEvaluatorDropsFrames = 1,    // the evaluator drops a frame that is evaluated to its end
  kUnitsOfCStack = 2,           // C stack units that CPython counts for a run of its own loop
  kCloseGivesValue = 1,         // generator.close() returns the generator's return value
};
#define BORROWED_RERAISE_STAR "CALL_INTRINSIC_2:1"
#define GENERATORS_KEEP_CODE_IN_FRAME 1  // the frame of a finished generator still has the code
#define LOOK_UP_ATTRIBUTE PyObject_GetOptionalAttr

// ---- Frames ---------------------------------------------------------------------------------------------------------
static inline PyObject* frame_function(const Frame* frame) { return frame->f_funcobj; }
static inline void set_frame_function(Frame* frame, PyFunctionObject* function) {
  frame->f_funcobj = (PyObject*)function;
}
#define FRAME_CODE(frame) ((PyCodeObject*)(frame)->f_executable)
static inline void set_frame_code(Frame* frame, PyCodeObject* code) { frame->f_executable = (PyObject*)code; }
#define LAST_INSTRUCTION(frame) ((frame)->instr_ptr)
static inline void start_fields(Frame* frame) { frame->return_offset = 0; }
static inline Frame* current_frame(PyThreadState* tstate) { return tstate->current_frame; }

#define IS_SUSPENDED(state) FRAME_STATE_SUSPENDED(state)
#define SUSPENDED_BY(oparg) ((int8_t)(FRAME_SUSPENDED + (oparg)))

// ---- A run of the loop, as the thread sees it -----------------------------------------------------------------------
// CPython's own loop puts a C frame below its outermost frame; the only instruction of the C frame ends the loop. The
// loop here knows its outermost frame, and needs no C frame.
typedef struct {
  Frame* outer;
} LoopEntry;

// -1: too deep in C, an exception is set; the loop is entered all the same.
static inline int enter_loop(PyThreadState* tstate, LoopEntry* entry, Frame* outermost, Frame* innermost) {
  entry->outer = tstate->current_frame;
  outermost->previous = entry->outer;
  tstate->current_frame = innermost;
  tstate->c_recursion_remaining -= kUnitsOfCStack - 1;
  if (LIKELY(_Py_EnterRecursiveCallTstate(tstate, "") == 0)) return 0;
  tstate->c_recursion_remaining--;
  return -1;
}
static inline void leave_loop(PyThreadState* tstate, LoopEntry* entry) {
  tstate->current_frame = entry->outer;
  tstate->c_recursion_remaining += kUnitsOfCStack;
}
static inline void make_current(PyThreadState* tstate, LoopEntry* entry, Frame* frame) {
  (void)entry;
  tstate->current_frame = frame;
}
#define TRACED(entry) 0u
static inline uintptr_t monitoring_version(PyThreadState* tstate) {
  return tstate->interp->ceval.instrumentation_version;
}
#define UNWATCHED(opcode) (opcode)

static inline int wants_attention(PyThreadState* tstate) { return (tstate->eval_breaker & _PY_EVAL_EVENTS_MASK) != 0; }

// ---- Objects --------------------------------------------------------------------------------------------------------
// The code of any generator, borrowed.
static inline PyCodeObject* generator_code(PyObject* generator) {
  return FRAME_CODE((_PyInterpreterFrame*)((PyGenObject*)generator)->gi_iframe);
}

// An object whose class manages its dictionary has either inline values or a dictionary.
static inline PyObject* managed_dict(PyObject* object) { return (PyObject*)_PyObject_GetManagedDict(object); }
static inline PyDictValues* inline_values(PyObject* object) {
  if (!(Py_TYPE(object)->tp_flags & Py_TPFLAGS_INLINE_VALUES) || managed_dict(object) != NULL) return NULL;
  PyDictValues* values = _PyObject_InlineValues(object);
  return values->valid ? values : NULL;
}
