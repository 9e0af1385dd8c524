// What CPython 3.12 has of its own (cpython.h).
#pragma once

#include "internal/pycore_intrinsics.h"
#define CRESSET_OPCODES "frontend/eval/opcodes_312.def"
#define CRESSET_OPS_OF_VERSION "frontend/eval/ops_312.h"

// ---- Bytecode -------------------------------------------------------------------------------------------------------
#define COMPARISON(oparg) ((oparg) >> 4)
#define ATTRIBUTE_NAME(oparg) ((oparg) >> 1)
#define ATTRIBUTE_AS_METHOD(oparg) ((oparg) & 1)
#define KEEPS_OPERAND(opcode) 0
static inline int reads_slot(int opcode) {
  return opcode == LOAD_FAST || opcode == LOAD_FAST_CHECK || opcode == LOAD_FAST_AND_CLEAR || opcode == DELETE_FAST;
}
enum {
  kMostThrown = 1,              // arguments of throw() that the evaluator takes apart itself: more are warned of
  kUnitsAtEndOfLoop = 1,        // END_FOR: FOR_ITER passes over it when the iterator is exhausted
  kSendKeepsReceiver = 1,       // what a delegate returns is pushed; END_SEND drops the delegate
  kGeneratorsConvertStops = 1,  // their own bytecode makes a RuntimeError of StopIteration
  kEvaluatorDropsFrames = 1,    // a frame that is evaluated to its end is dropped by the evaluator
};
#define BORROWED_RERAISE_STAR "CALL_INTRINSIC_2:1"
#define GENERATORS_KEEP_CODE_IN_FRAME 1  // a finished generator's code is still found there

// ---- Frames ---------------------------------------------------------------------------------------------------------
static inline PyObject* frame_function(const Frame* frame) { return frame->f_funcobj; }
static inline void set_frame_function(Frame* frame, PyFunctionObject* function) {
  frame->f_funcobj = (PyObject*)function;
}
static inline void start_fields(Frame* frame) { frame->return_offset = 0; }
static inline Frame* current_frame(PyThreadState* tstate) {
  return tstate->cframe != NULL ? tstate->cframe->current_frame : NULL;
}

// ---- One run of the loop, as the thread sees it ---------------------------------------------------------------------
// CPython's own loop puts a frame of C below its outermost one, whose only instruction ends the loop; ours knows its
// outermost frame, and needs none.
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
// Whether CPython's own loop has to do what starts here: trace and profile functions, and all who use sys.monitoring,
// are called by instructions that CPython puts in the place of others when the code starts. What they are put into
// while it runs goes on there (IS_WATCHED_INSTRUCTION).
static inline int is_watched(PyThreadState* tstate, const PyCodeObject* code) {
  const PyInterpreterState* interpreter = tstate->interp;
  if (LIKELY(code->_co_monitoring == NULL && code->_co_instrumentation_version == interpreter->monitoring_version)) {
    return 0;
  }
  for (int i = 0; i < _PY_MONITORING_UNGROUPED_EVENTS; i++) {
    if (interpreter->monitors.tools[i] != 0) return 1;
    const _PyCoMonitoringData* own = code->_co_monitoring;
    if (own != NULL && (own->local_monitors.tools[i] != 0 || own->active_monitors.tools[i] != 0)) return 1;
  }
  return 0;
}
#define IS_WATCHED_INSTRUCTION(opcode) ((opcode) >= MIN_INSTRUMENTED_OPCODE)
// Of the instruction behind KW_NAMES: CPython's loop cannot be entered between the two.
#define UNWATCHED(opcode) ((opcode) == INSTRUMENTED_CALL ? CALL : (opcode))

// ---- Recursion: Python's calls and C's are counted apart ------------------------------------------------------------
#define RECURSION_OF_C(tstate) ((tstate)->c_recursion_remaining)
#define RECURSION_OF_PYTHON(tstate) ((tstate)->py_recursion_remaining)
int cresset_too_deep(PyThreadState* tstate);  // -1 with an exception set, or 0: there is some room for handling it
static inline int enter_python(PyThreadState* tstate) {
  return UNLIKELY(tstate->py_recursion_remaining-- <= 0) && cresset_too_deep(tstate) < 0;
}
static inline void leave_python(PyThreadState* tstate) { tstate->py_recursion_remaining++; }

// ---- Objects --------------------------------------------------------------------------------------------------------
// Builtin classes keep theirs elsewhere than in tp_dict.
static inline PyObject* type_names(PyTypeObject* type) {
  PyObject* names = PyType_GetDict(type);
  Py_XDECREF(names);  // the class keeps it
  return names;
}
// Of a KeyError as PyErr_Fetch gives it.
static inline PyObject* key_error_arguments(PyObject* value) {
  return PyExceptionInstance_Check(value) ? ((PyBaseExceptionObject*)value)->args : NULL;
}
// With the name, for suggestions.
static inline void set_import_error(PyObject* message, PyObject* package, PyObject* path, PyObject* name) {
  PyErr_SetImportError(message, package, path);
  PyObject* error = PyErr_GetRaisedException();
  if (PyObject_TypeCheck(error, (PyTypeObject*)PyExc_ImportError)) {
    Py_XSETREF(((PyImportErrorObject*)error)->name_from, Py_NewRef(name));
  }
  PyErr_SetRaisedException(error);
}
// Of any generator, borrowed.
static inline PyCodeObject* generator_code(PyObject* generator) {
  return ((_PyInterpreterFrame*)((PyGenObject*)generator)->gi_iframe)->f_code;
}
#define IMPORT_FUNCTION(tstate) ((tstate)->interp->imports.import_func)

// Of an object whose class manages its dictionary: its values without one, or it.
static inline PyDictValues* inline_values(PyObject* object) {
  const PyDictOrValues both = *_PyObject_DictOrValuesPointer(object);
  return _PyDictOrValues_IsValues(both) ? _PyDictOrValues_GetValues(both) : NULL;
}
static inline PyObject* managed_dict(PyObject* object) {
  const PyDictOrValues both = *_PyObject_DictOrValuesPointer(object);
  return _PyDictOrValues_IsValues(both) ? NULL : _PyDictOrValues_GetDict(both);
}

// Integers of at most one digit: their value and comparison need no call.
#define IS_MEDIUM(number) _PyLong_IsCompact((PyLongObject*)(number))
#define MEDIUM_VALUE(number) ((long)_PyLong_CompactValue((PyLongObject*)(number)))

// ---- cpython_312.c --------------------------------------------------------------------------------------------------
// What the bytecode around a generator's body makes of an exception that leaves it; new reference.
PyObject* cresset_leaving_generator(PyCodeObject* code, PyObject* exception);
