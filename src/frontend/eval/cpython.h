// CPython's frames, for C sources of this folder only (the internal headers do not compile as C++). libpython does not
// export what makes and frees frames: it is written again here, on the documented layout of the data stack. What is the
// same in all versions stands here and in cpython.c, what a version has of its own in cpython_3xx.h and .c, its opcodes
// in opcodes_3xx.def and, those that no other version has, ops_3xx.h.
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

// Opcode without specialization, and inline cache entries, by opcode.
extern const uint8_t cresset_base_opcode[256];
extern const uint8_t cresset_cache_entries[256];

// The instructions as the compiler wrote them, inline caches empty; the code keeps them.
const Unit* cresset_written_code(PyCodeObject* code);

// A longer data stack; 0 when out of memory, with an exception.
PyObject** cresset_grow_data_stack(PyThreadState* tstate, size_t slots);
void cresset_shrink_data_stack(PyThreadState* tstate);
// The frame object outlives the frame: it takes the contents.
void cresset_move_into_frame_object(PyThreadState* tstate, PyFrameObject* object, Frame* frame);

static inline Unit* frame_code(Frame* frame) { return _PyCode_CODE(FRAME_CODE(frame)); }
static inline int frame_last(Frame* frame) { return (int)(LAST_INSTRUCTION(frame) - frame_code(frame)); }
// In a frame of ours LAST_INSTRUCTION is the instruction in progress, or the last one that was; CPython 3.13 has the
// one that comes next there while a frame is at rest.
static inline void take_frame_over(Frame* frame) { LAST_INSTRUCTION(frame) -= kRestsAtNextInstruction; }
static inline void hand_frame_over(Frame* frame) { LAST_INSTRUCTION(frame) += kRestsAtNextInstruction; }
static inline int resting_frame_last(Frame* frame) { return frame_last(frame) - kRestsAtNextInstruction; }
static inline PyObject** frame_stack(Frame* frame) { return frame->localsplus + FRAME_CODE(frame)->co_nlocalsplus; }

static inline int code_is_generator(const PyCodeObject* code) {
  return (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0;
}

// Whether calling it is evaluating its code: somebody may have put a function of C in the place of that.
extern vectorcallfunc cresset_call_evaluates, cresset_call_watched;  // known.c
static inline int is_plain_function(PyObject* object) {
  if (!PyFunction_Check(object)) return 0;
  const vectorcallfunc call = ((PyFunctionObject*)object)->vectorcall;
  return call == cresset_call_evaluates || call == cresset_call_watched;
}

static inline PyObject* function_code(PyObject* function) { return ((PyFunctionObject*)function)->func_code; }

// A new frame on the data stack, slots not filled in: the caller does, at once. Steals `function` and `names`.
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

// Drops what a frame holds, its code only where `with_code`. The frame is unlinked: finalizers that look at the stack
// must not find it.
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

// Both, for a frame of a called function. One level of recursion is lent, because destructors run Python code.
static inline void drop_frame(PyThreadState* tstate, Frame* frame) {
  RECURSION_OF_C(tstate)--;
  clear_frame(tstate, frame, 1);
  RECURSION_OF_C(tstate)++;
  pop_frame_memory(tstate, frame);
}

// Of a generator that is finished.
static inline void clear_generator_frame(PyThreadState* tstate, Frame* frame) {
  clear_frame(tstate, frame, !GENERATORS_KEEP_CODE_IN_FRAME);
}

// What is handled from here on is a level of its own, as a generator's is: what was handled before is still found where
// nothing else is, and is there again afterwards.
static inline void cresset_push_handled(PyThreadState* tstate, _PyErr_StackItem* level) {
  level->exc_value = NULL;
  level->previous_item = tstate->exc_info;
  tstate->exc_info = level;
}
static inline void cresset_pop_handled(PyThreadState* tstate, _PyErr_StackItem* level) {
  tstate->exc_info = level->previous_item;
  Py_CLEAR(level->exc_value);
}

// Signals, pending calls, a request for the GIL, an asynchronous exception, the collector where it waits for such a
// moment. -1 with an exception set.
int cresset_attend(PyThreadState* tstate);

// The handler of an instruction, from the code's exception table; 0 if there is none.
typedef struct {
  int target, depth, push_last;
} Handler;
int cresset_find_handler(PyCodeObject* code, int instruction, Handler* handler);
