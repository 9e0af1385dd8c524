// Functions for CPython 3.11 alone, which libpython does not export.
#include "frontend/eval/cpython.h"

#define NEED_OPCODE_TABLES
#define _PyOpcode_Caches cresset_cache_entries
#define _PyOpcode_Deopt cresset_base_opcode
#include "internal/pycore_opcode.h"

int cresset_attend(PyThreadState* tstate) {
  struct _ceval_state* ceval = &tstate->interp->ceval;
  if (Py_MakePendingCalls() != 0) return -1;
  PyObject* raised = tstate->async_exc;
  if (raised != NULL) {
    tstate->async_exc = NULL;
    ceval->pending.async_exc = 0;
  }
  if (raised != NULL || _Py_atomic_load_relaxed(&ceval->gil_drop_request)) {
    PyEval_RestoreThread(PyEval_SaveThread());  // taking the GIL also recomputes the eval breaker
  }
  if (raised == NULL) return 0;
  PyErr_SetNone(raised);
  Py_DECREF(raised);
  return -1;
}

PyObject* cresset_wrap_async_value(PyObject* value) {
  typedef struct {
    PyObject_HEAD PyObject* value;
  } WrappedValue;
  WrappedValue* wrapped = PyObject_GC_New(WrappedValue, &_PyAsyncGenWrappedValue_Type);
  if (wrapped == NULL) {
    Py_DECREF(value);
    return NULL;
  }
  wrapped->value = value;
  PyObject_GC_Track(wrapped);
  return (PyObject*)wrapped;
}
