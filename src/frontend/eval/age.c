// Internals of the interpreter. The garbage collector's lists show which objects are young: new objects are appended to
// the youngest list. The interpreter also keeps a copy of the original builtins.
#include "frontend/eval/helpers.h"
#include "frontend/eval/interpreter.h"
#include "internal/pycore_gc.h"
#include "internal/pycore_interp.h"

// Far below any threshold, and far above the number of objects that a call can make.
enum { kResting = -(1 << 30) };

void cresset_eval_rest_collector(void) {
  struct gc_generation* const youngest = &PyThreadState_Get()->interp->gc.generations[0];
  if (youngest->count >= 0) youngest->count += kResting;
}

void cresset_eval_wake_collector(void) {
  struct gc_generation* const youngest = &PyThreadState_Get()->interp->gc.generations[0];
  if (youngest->count < 0) youngest->count -= kResting;
}

void cresset_eval_visit_new_objects(PyObject** mark, void (*visit)(void*, PyObject*), void* arg) {
  struct gc_generation* generations = PyThreadState_Get()->interp->gc.generations;
  PyGC_Head* const new_objects = &generations[0].head;
  PyGC_Head* at = _PyGCHead_NEXT(new_objects);
  if (*mark != NULL) {
    at = _PyGCHead_NEXT(_Py_AS_GC(*mark));
    while (at != new_objects && at != &generations[1].head && at != &generations[2].head) {
      visit(arg, (PyObject*)(at + 1));
      at = _PyGCHead_NEXT(at);
    }
    if (at != new_objects) at = _PyGCHead_NEXT(new_objects);  // a collection has taken the mark along
  }
  for (; at != new_objects; at = _PyGCHead_NEXT(at)) visit(arg, (PyObject*)(at + 1));
  if (*mark == NULL && (*mark = PyList_New(0)) == NULL) return PyErr_Clear();
  PyObject_GC_UnTrack(*mark);
  PyObject_GC_Track(*mark);  // at the end
}

PyObject* cresset_eval_builtins(void) { return PyThreadState_Get()->interp->builtins_copy; }
