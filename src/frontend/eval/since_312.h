// Properties of CPython from 3.12 on (cpython.h).
#pragma once

#include "internal/pycore_intrinsics.h"

// ---- Bytecode -------------------------------------------------------------------------------------------------------
#define ATTRIBUTE_NAME(oparg) ((oparg) >> 1)
#define ATTRIBUTE_AS_METHOD(oparg) ((oparg) & 1)
#define KEEPS_OPERAND(opcode) 0

// ---- Tools that watch code ------------------------------------------------------------------------------------------
// The version of code with all requested instrumentation.
static inline uintptr_t monitoring_version(PyThreadState* tstate);
// Whether CPython's own loop has to run the code. When code starts, CPython replaces instructions for trace and profile
// functions and for tools of sys.monitoring. Code instrumented while it runs continues in CPython's loop at the
// replaced instruction (IS_WATCHED_INSTRUCTION).
static inline int is_thread_watched(PyThreadState* tstate) {
  const PyInterpreterState* interpreter = tstate->interp;
  for (size_t i = 0; i < sizeof interpreter->monitors.tools; i++)
    if (interpreter->monitors.tools[i] != 0) return 1;
  return 0;
}
static inline int is_watched(PyThreadState* tstate, const PyCodeObject* code) {
  if (LIKELY(code->_co_monitoring == NULL && code->_co_instrumentation_version == monitoring_version(tstate))) {
    return 0;
  }
  if (is_thread_watched(tstate)) return 1;
  const _PyCoMonitoringData* own = code->_co_monitoring;
  for (size_t i = 0; own != NULL && i < sizeof own->local_monitors.tools; i++)
    if (own->local_monitors.tools[i] != 0 || own->active_monitors.tools[i] != 0) return 1;
  return 0;
}
#define IS_WATCHED_INSTRUCTION(opcode) ((opcode) >= MIN_INSTRUMENTED_OPCODE)

// ---- Recursion: Python's calls and C's are counted apart ------------------------------------------------------------
#define RECURSION_OF_C(tstate) ((tstate)->c_recursion_remaining)
#define RECURSION_OF_PYTHON(tstate) ((tstate)->py_recursion_remaining)
int cresset_too_deep(PyThreadState* tstate);  // -1 with an exception set, or 0: some room is left for handling it
static inline int enter_python(PyThreadState* tstate) {
  return UNLIKELY(tstate->py_recursion_remaining-- <= 0) && cresset_too_deep(tstate) < 0;
}
static inline void leave_python(PyThreadState* tstate) { tstate->py_recursion_remaining++; }

// ---- Objects --------------------------------------------------------------------------------------------------------
// The namespace of a class. Builtin classes keep it elsewhere than in tp_dict.
static inline PyObject* type_names(PyTypeObject* type) {
  PyObject* names = PyType_GetDict(type);
  Py_XDECREF(names);  // the class keeps it
  return names;
}
// The arguments of a KeyError from PyErr_Fetch.
static inline PyObject* key_error_arguments(PyObject* value) {
  return PyExceptionInstance_Check(value) ? ((PyBaseExceptionObject*)value)->args : NULL;
}
// Adds the name for CPython's suggestions.
static inline void set_import_error(PyObject* message, PyObject* package, PyObject* path, PyObject* name) {
  PyErr_SetImportError(message, package, path);
  PyObject* error = PyErr_GetRaisedException();
  if (PyObject_TypeCheck(error, (PyTypeObject*)PyExc_ImportError)) {
    Py_XSETREF(((PyImportErrorObject*)error)->name_from, Py_NewRef(name));
  }
  PyErr_SetRaisedException(error);
}
#define IMPORT_FUNCTION(tstate) ((tstate)->interp->imports.import_func)

// Integers of at most one digit: value and comparison need no call.
#define IS_MEDIUM(number) _PyLong_IsCompact((PyLongObject*)(number))
#define MEDIUM_VALUE(number) ((long)_PyLong_CompactValue((PyLongObject*)(number)))

// ---- since_312.c ----------------------------------------------------------------------------------------------------
// The exception after it leaves a generator's body, as the surrounding bytecode converts it; new reference.
PyObject* cresset_leaving_generator(PyCodeObject* code, PyObject* exception);
