// Names and slot functions of CPython, as recognized by the evaluator. The slot functions for methods written in Python
// (`__call__`, `__getattr__`, ...) are C functions not exported by libpython. They are read from a class that defines
// all of them.
#pragma once

#include "frontend/eval/cpython.h"

typedef struct {
  ternaryfunc call;           // tp_call of a class with a Python __call__
  getattrofunc getattr;       // tp_getattro with a Python __getattr__ or __getattribute__
  getattrofunc getattribute;  // with __getattribute__ alone, after the first look-up
  setattrofunc setattr;       // tp_setattro with a Python __setattr__ or __delattr__
  binaryfunc getitem;         // mp_subscript
  objobjargproc setitem;      // mp_ass_subscript
  getiterfunc iter;
  iternextfunc next;
  hashfunc hash;
  inquiry truth;        // nb_bool
  lenfunc length;       // mp_length
  objobjproc contains;  // sq_contains
  descrgetfunc descr_get;
  initproc init;
  newfunc make;                 // tp_new with a Python __new__
  getattrofunc type_getattr;    // of classes
  getattrofunc module_getattr;  // of modules
  getattrofunc super_getattr;
  ternaryfunc type_call;  // tp_call of `type`
  PyTypeObject* partial;  // functools.partial
  PyObject* object_getattribute;
  PyObject* object_init;
  PyObject* next_function;   // builtins.next
  PyObject* generator_send;  // generator.send
  PyObject* coroutine_send;
  PyObject* generator_throw;
  PyObject* generator_close;
  PyObject* module_getattribute;
} KnownSlots;

#define CRESSET_KNOWN_NAMES(X) \
  X(__call__)                  \
  X(__init__)                  \
  X(__new__)                   \
  X(__getattr__)               \
  X(__getattribute__)          \
  X(__setattr__)               \
  X(__delattr__)               \
  X(__set__)                   \
  X(__delete__)                \
  X(__getitem__)               \
  X(__setitem__)               \
  X(__delitem__)               \
  X(__iter__)                  \
  X(__next__)                  \
  X(__bool__)                  \
  X(__len__)                   \
  X(__contains__)              \
  X(__get__)                   \
  X(__enter__)                 \
  X(__exit__)                  \
  X(__aenter__)                \
  X(__aexit__)                 \
  X(__build_class__)           \
  X(__import__)                \
  X(__name__)                  \
  X(__all__)                   \
  X(__dict__)                  \
  X(__spec__)                  \
  X(__annotations__)           \
  X(__match_args__)            \
  X(get) X(cr_await) X(next) X(send) X(throw) X(close) X(displayhook) X(func) X(args) X(keywords) X(_initializing)

typedef struct {
#define X(name) PyObject* name;
  CRESSET_KNOWN_NAMES(X)
#undef X
} KnownNames;

extern KnownSlots cresset_known;
extern KnownNames cresset_names;

// Whether a Python function hashes the key, or an item of the tuple.
static inline int cresset_is_hashed_in_python(PyObject* key) {
  if (!PyTuple_CheckExact(key)) return Py_TYPE(key)->tp_hash == cresset_known.hash;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++)
    if (cresset_is_hashed_in_python(PyTuple_GET_ITEM(key, i))) return 1;
  return 0;
}

// Replaces a symbolic string on the stack by its str (hooks.h). -1 with an exception set.
int cresset_look_at_string(PyObject** place);

// Whether there are lists closed to graph segments (frontend/feedback/growing_containers.h).
extern int cresset_asks_for_lists;

// Fills both tables; once. -1 with an exception set.
int cresset_known_init(void);
