// CPython's frames, for C sources of this folder only (the internal headers do not compile as C++). libpython does not
// export the functions for making and freeing frames. They are written again here, on the documented layout of the data
// stack. cpython.h and cpython.c hold the code common to all versions. cpython_3xx.h and .c hold the code of one
// version. opcodes_3xx.def holds its opcodes, and ops_3xx.h the opcodes of no other version.
#pragma once

// Sources are compiled with Py_BUILD_CORE and Py_BUILD_CORE_MODULE (src/python/CMakeLists.txt).
#include <Python.h>
#include <frameobject.h>

#include "frontend/eval/bytecode.h"
#include "internal/pycore_abstract.h"
#include "internal/pycore_call.h"
#include "internal/pycore_ceval.h"
#include "internal/pycore_code.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_frame.h"
#include "internal/pycore_genobject.h"
#include "internal/pycore_long.h"
#include "internal/pycore_object.h"
#include "internal/pycore_pyerrors.h"
#include "internal/pycore_pystate.h"

typedef _PyInterpreterFrame Frame;
typedef _Py_CODEUNIT Unit;

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#include "frontend/eval/cpython_311.h"
#elif PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
#include "frontend/eval/cpython_312.h"
#elif PY_VERSION_HEX >= 0x030D0000 && PY_VERSION_HEX < 0x030E0000
#include "frontend/eval/cpython_313.h"
#else
#error "the evaluator knows CPython 3.11 to 3.13"
#endif

// The opcode without specialization, and the number of inline cache entries, by opcode.
extern const uint8_t cresset_base_opcode[256];
extern const uint8_t cresset_cache_entries[256];

// The instructions as the compiler wrote them, inline caches empty. The code object keeps them alive.
const Unit* cresset_written_code(PyCodeObject* code);

// Enlarges the data stack; 0 when out of memory, with an exception.
PyObject** cresset_grow_data_stack(PyThreadState* tstate, size_t slots);
void cresset_shrink_data_stack(PyThreadState* tstate);
// The frame object outlives the frame and takes its contents.
void cresset_move_into_frame_object(PyThreadState* tstate, PyFrameObject* object, Frame* frame);

static inline Unit* frame_code(Frame* frame) { return _PyCode_CODE(FRAME_CODE(frame)); }
static inline int frame_last(Frame* frame) { return (int)(LAST_INSTRUCTION(frame) - frame_code(frame)); }
// In a frame of this evaluator LAST_INSTRUCTION is the instruction in progress, or the last instruction. CPython 3.13
// stores the next instruction there while a frame is at rest.
static inline void take_frame_over(Frame* frame) { LAST_INSTRUCTION(frame) -= kRestsAtNextInstruction; }
static inline void hand_frame_over(Frame* frame) { LAST_INSTRUCTION(frame) += kRestsAtNextInstruction; }
static inline int resting_frame_last(Frame* frame) { return frame_last(frame) - kRestsAtNextInstruction; }
static inline PyObject** frame_stack(Frame* frame) { return frame->localsplus + FRAME_CODE(frame)->co_nlocalsplus; }

static inline int code_is_generator(const PyCodeObject* code) {
  return (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0;
}

// Whether a call of the function evaluates its code. A C function may have been installed as its vectorcall.
extern vectorcallfunc cresset_call_evaluates, cresset_call_watched;  // known.c
static inline int is_plain_function(PyObject* object) {
  if (!PyFunction_Check(object)) return 0;
  const vectorcallfunc call = ((PyFunctionObject*)object)->vectorcall;
  return call == cresset_call_evaluates || call == cresset_call_watched;
}

static inline PyObject* function_code(PyObject* function) { return ((PyFunctionObject*)function)->func_code; }

// A new frame on the data stack. The caller must fill the slots at once. Steals `function` and `names`.
static inline Frame* push_frame(PyThreadState* tstate, PyFunctionObject* function, PyCodeObject* code,
                                PyObject* names) {
  const size_t slots = (size_t)code->co_nlocalsplus + (size_t)code->co_stacksize + FRAME_SPECIALS_SIZE;
  PyObject** place = tstate->datastack_top;
  if (LIKELY(place != NULL && slots < (size_t)(tstate->datastack_limit - place))) {
    tstate->datastack_top += slots;
  } else {
    place = cresset_grow_data_stack(tstate, slots);
    if (place == NULL) {
      Py_DECREF(function);
      Py_XDECREF(names);
      return NULL;
    }
  }
  Frame* frame = (Frame*)place;
  set_frame_function(frame, function);
  set_frame_code(frame, (PyCodeObject*)Py_NewRef(code));
  frame->f_builtins = function->func_builtins;
  frame->f_globals = function->func_globals;
  frame->f_locals = names;
  frame->stacktop = code->co_nlocalsplus;
  frame->frame_obj = NULL;
  LAST_INSTRUCTION(frame) = _PyCode_CODE(code) - 1;
  frame->owner = FRAME_OWNED_BY_THREAD;
  start_fields(frame);
  return frame;
}

// Gives back the memory of the newest frame.
static inline void pop_frame_memory(PyThreadState* tstate, Frame* frame) {
  if (UNLIKELY((PyObject**)frame == &tstate->datastack_chunk->data[0])) {
    cresset_shrink_data_stack(tstate);
  } else {
    tstate->datastack_top = (PyObject**)frame;
  }
}

// Drops the references of a frame, its code only where `with_code`. The frame is unlinked: finalizers that look at the
// stack must not find it.
static inline void clear_frame(PyThreadState* tstate, Frame* frame, int with_code) {
  PyCodeObject* code = FRAME_CODE(frame);
  PyFrameObject* object = frame->frame_obj;
  frame->frame_obj = NULL;
  if (UNLIKELY(object != NULL && Py_REFCNT(object) > 1)) {
    Py_INCREF(code);
    cresset_move_into_frame_object(tstate, object, frame);
    Py_DECREF(object);
  } else {
    Py_XDECREF(object);
    for (int i = 0; i < frame->stacktop; i++) Py_XDECREF(frame->localsplus[i]);
    Py_XDECREF(frame->f_locals);
    Py_DECREF(frame_function(frame));
  }
  if (with_code) Py_DECREF(code);
}

// Clears a called function's frame and frees its memory. Lends one recursion level, because destructors run Python
// code.
static inline void drop_frame(PyThreadState* tstate, Frame* frame) {
  RECURSION_OF_C(tstate)--;
  clear_frame(tstate, frame, 1);
  RECURSION_OF_C(tstate)++;
  pop_frame_memory(tstate, frame);
}

// Clears the frame of a finished generator.
static inline void clear_generator_frame(PyThreadState* tstate, Frame* frame) {
  clear_frame(tstate, frame, !GENERATORS_KEEP_CODE_IN_FRAME);
}

// Opens a level of handled exceptions, as a generator does. The outer exception is still found while the level is
// empty, and is back after the pop.
static inline void cresset_push_handled(PyThreadState* tstate, _PyErr_StackItem* level) {
  level->exc_value = NULL;
  level->previous_item = tstate->exc_info;
  tstate->exc_info = level;
}
static inline void cresset_pop_handled(PyThreadState* tstate, _PyErr_StackItem* level) {
  tstate->exc_info = level->previous_item;
  Py_CLEAR(level->exc_value);
}

// Handles signals, pending calls, a request for the GIL, an asynchronous exception, and a waiting collector. -1 with an
// exception set.
int cresset_attend(PyThreadState* tstate);

// The handler of an instruction, from the code's exception table; 0 if there is none.
typedef struct {
  int target, depth, push_last;
} Handler;
int cresset_find_handler(PyCodeObject* code, int instruction, Handler* handler);
