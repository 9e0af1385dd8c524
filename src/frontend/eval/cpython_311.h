// What CPython 3.11 has of its own (cpython.h).
#pragma once

#define CRESSET_OPCODES "frontend/eval/opcodes_311.def"
#define CRESSET_OPS_OF_VERSION "frontend/eval/ops_311.h"

// ---- Bytecode -------------------------------------------------------------------------------------------------------
#define INLINE_CACHE_ENTRIES_FOR_ITER 0
#define INLINE_CACHE_ENTRIES_SEND 0
#define INLINE_CACHE_ENTRIES_CONTAINS_OP 0
#define INLINE_CACHE_ENTRIES_JUMP_BACKWARD 0
#define INLINE_CACHE_ENTRIES_POP_JUMP 0
#define COMPARISON(oparg) (oparg)
#define COMPARISON_AS_BOOL(oparg) 0
#define ATTRIBUTE_NAME(oparg) (oparg)
#define ATTRIBUTE_AS_METHOD(oparg) 0
#define KEEPS_OPERAND(opcode) ((opcode) == JUMP_IF_TRUE_OR_POP || (opcode) == JUMP_IF_FALSE_OR_POP)
static inline int reads_slot(int opcode) { return opcode == LOAD_FAST || opcode == DELETE_FAST; }
#define BRANCHING_OPCODE(frame) _Py_OPCODE(*LAST_INSTRUCTION(frame))
enum {
  kMostThrown = 3,  // arguments of throw() that the evaluator takes apart itself
  kUnitsAtEndOfLoop = 0,
  kCloseGivesValue = 0,
  kCallableFirst = 0,  // NULL or a method's function, then the callable or its self
  kRestsAtNextInstruction = 0,
  kSendKeepsReceiver = 0,       // what a delegate returns takes its place on the stack
  kGeneratorsConvertStops = 0,  // who resumes them makes a RuntimeError of StopIteration
  kEvaluatorDropsFrames = 0,    // a frame that was evaluated to its end is dropped by who called it
};
#define BORROWED_RERAISE_STAR "PREP_RERAISE_STAR"
#define LOOK_UP_ATTRIBUTE _PyObject_LookupAttr
#define GENERATORS_KEEP_CODE_IN_FRAME 0

// ---- Frames ---------------------------------------------------------------------------------------------------------
static inline PyObject* frame_function(const Frame* frame) { return (PyObject*)frame->f_func; }
#define FRAME_CODE(frame) ((frame)->f_code)
static inline void set_frame_code(Frame* frame, PyCodeObject* code) { frame->f_code = code; }
#define LAST_INSTRUCTION(frame) ((frame)->prev_instr)
static inline void set_frame_function(Frame* frame, PyFunctionObject* function) { frame->f_func = function; }
static inline void start_fields(Frame* frame) { frame->is_entry = false; }
static inline Frame* current_frame(PyThreadState* tstate) {
  return tstate->cframe != NULL ? tstate->cframe->current_frame : NULL;
}

// While a value is yielded, or asked of a delegate.
#define IS_SUSPENDED(state) ((state) == FRAME_SUSPENDED)
#define SUSPENDED_BY(oparg) FRAME_SUSPENDED

// ---- One run of the loop, as the thread sees it ---------------------------------------------------------------------
typedef struct {
  _PyCFrame cframe;
  _PyCFrame* outer;
} LoopEntry;

static inline int enter_loop(PyThreadState* tstate, LoopEntry* entry, Frame* outermost, Frame* innermost) {
  entry->outer = tstate->cframe;
  entry->cframe = (_PyCFrame){entry->outer->use_tracing, innermost, entry->outer};
  tstate->cframe = &entry->cframe;
  outermost->is_entry = true;
  outermost->previous = entry->outer->current_frame;
  return 0;
}
static inline void leave_loop(PyThreadState* tstate, LoopEntry* entry) {
  tstate->cframe = entry->outer;
  entry->outer->use_tracing = entry->cframe.use_tracing;
}
static inline void make_current(PyThreadState* tstate, LoopEntry* entry, Frame* frame) {
  (void)tstate;
  entry->cframe.current_frame = frame;
}
// 255, or 0: whether a trace function is to see each instruction.
#define TRACED(entry) ((entry).cframe.use_tracing)
// Whether CPython's own loop has to do what starts here.
static inline int is_thread_watched(PyThreadState* tstate) { return tstate->cframe->use_tracing != 0; }
static inline int is_watched(PyThreadState* tstate, const PyCodeObject* code) {
  (void)code;
  return is_thread_watched(tstate);
}
#define IS_WATCHED_INSTRUCTION(opcode) 0
#define UNWATCHED(opcode) (opcode)

static inline int wants_attention(PyThreadState* tstate) {
  return _Py_atomic_load_relaxed(&tstate->interp->ceval.eval_breaker);
}

// ---- Recursion ------------------------------------------------------------------------------------------------------
#define RECURSION_OF_C(tstate) ((tstate)->recursion_remaining)
#define RECURSION_OF_PYTHON(tstate) ((tstate)->recursion_remaining)
static inline int enter_python(PyThreadState* tstate) { return _Py_EnterRecursiveCallTstate(tstate, ""); }
static inline void leave_python(PyThreadState* tstate) { _Py_LeaveRecursiveCallTstate(tstate); }

PyObject* cresset_wrap_async_value(PyObject* value);  // steals

// ---- Objects --------------------------------------------------------------------------------------------------------
static inline PyObject* type_names(PyTypeObject* type) { return type->tp_dict; }
// Of a KeyError as PyErr_Fetch gives it: C code's own are not made yet.
static inline PyObject* key_error_arguments(PyObject* value) { return value; }
static inline void set_import_error(PyObject* message, PyObject* package, PyObject* path, PyObject* name) {
  (void)name;
  PyErr_SetImportError(message, package, path);
}
// Of any generator, borrowed.
static inline PyCodeObject* generator_code(PyObject* generator) { return ((PyGenObject*)generator)->gi_code; }
#define IMPORT_FUNCTION(tstate) ((tstate)->interp->import_func)

// Of an object whose class manages its dictionary: its values without one, or it.
static inline PyDictValues* inline_values(PyObject* object) { return *_PyObject_ValuesPointer(object); }
static inline PyObject* managed_dict(PyObject* object) { return *_PyObject_ManagedDictPointer(object); }

// Integers of at most one digit: their value and comparison need no call.
#define IS_MEDIUM(number) ((size_t)(Py_SIZE(number) + 1) < 3)
#define MEDIUM_VALUE(number) ((long)Py_SIZE(number) * (long)((PyLongObject*)(number))->ob_digit[0])
