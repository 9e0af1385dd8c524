// How old an object is, by the garbage collector's lists: it appends what is made to the youngest one.
#include "frontend/eval/helpers.h"
#include "internal/pycore_gc.h"
#include "internal/pycore_interp.h"

int cresset_eval_age(PyObject* object, int most) {
  if (!_PyObject_IS_GC(object) || !_PyObject_GC_IS_TRACKED(object)) return 0;
  struct gc_generation* generations = PyThreadState_Get()->interp->gc.generations;
  PyGC_Head* at = _PyGCHead_NEXT(_Py_AS_GC(object));
  for (int i = 0; i < most; i++, at = _PyGCHead_NEXT(at)) {
    if (at == &generations[0].head) return 1;
    for (int older = 1; older < NUM_GENERATIONS; older++)
      if (at == &generations[older].head) return -1;
  }
  return 0;
}

void cresset_eval_visit_young(void (*visit)(void*, PyObject*), void* arg) {
  PyGC_Head* const young = &PyThreadState_Get()->interp->gc.generations[0].head;
  for (PyGC_Head* at = _PyGCHead_NEXT(young); at != young; at = _PyGCHead_NEXT(at)) visit(arg, (PyObject*)(at + 1));
}
