// Properties of CPython 3.11 alone (cpython.h).
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
  kMostThrown = 3,  // arguments of throw() that the evaluator handles itself
  kUnitsAtEndOfLoop = 0,
  kCloseGivesValue = 0,
  kCallableFirst = 0,  // NULL or a method's function, then the callable or its self
  kRestsAtNextInstruction = 0,
  kSendKeepsReceiver = 0,       // the return value of a delegate takes the delegate's place on the stack
  kGeneratorsConvertStops = 0,  // the code that resumes a generator converts StopIteration to a RuntimeError
  kEvaluatorDropsFrames = 0,    // the caller drops a frame that was evaluated to its end
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

// While a generator yields a value, or a delegate yields for it.
#define IS_SUSPENDED(state) ((state) == FRAME_SUSPENDED)
#define SUSPENDED_BY(oparg) FRAME_SUSPENDED

// ---- A run of the loop, as the thread sees it -----------------------------------------------------------------------
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
// 255 if a trace function must see each instruction, else 0.
#define TRACED(entry) ((entry).cframe.use_tracing)
// Whether CPython's own loop has to run the code.
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
// The arguments of a KeyError from PyErr_Fetch: a KeyError of C code has not been created yet.
static inline PyObject* key_error_arguments(PyObject* value) { return value; }
static inline void set_import_error(PyObject* message, PyObject* package, PyObject* path, PyObject* name) {
  (void)name;
  PyErr_SetImportError(message, package, path);
}
// The code of any generator, borrowed.
static inline PyCodeObject* generator_code(PyObject* generator) { return ((PyGenObject*)generator)->gi_code; }
#define IMPORT_FUNCTION(tstate) ((tstate)->interp->import_func)

// An object whose class manages its dictionary has either inline values or a dictionary.
static inline PyDictValues* inline_values(PyObject* object) { return *_PyObject_ValuesPointer(object); }
static inline PyObject* managed_dict(PyObject* object) { return *_PyObject_ManagedDictPointer(object); }

// Integers of at most one digit: value and comparison need no call.
#define IS_MEDIUM(number) ((size_t)(Py_SIZE(number) + 1) < 3)
#define MEDIUM_VALUE(number) ((long)Py_SIZE(number) * (long)((PyLongObject*)(number))->ob_digit[0])
