// How old an object is, by the garbage collector's lists: it appends what is made to the youngest one.
#include "frontend/eval/helpers.h"
#include "internal/pycore_gc.h"
#include "internal/pycore_interp.h"

int cresset_eval_age(PyObject* object, int most) {
  if (!_PyObject_IS_GC(object) || !_PyObject_GC_IS_TRACKED(object)) return 0;
  struct gc_generation* generations = PyThreadState_Get()->interp->gc.generations;
  PyGC_Head* const young = &generations[0].head;
  PyGC_Head* const wanted = _Py_AS_GC(object);
  // From the object to the end of its list, and from the end of the young, who are few: what ends first tells.
  PyGC_Head *at = _PyGCHead_NEXT(wanted), *back = _PyGCHead_PREV(young);
  for (int i = 0; i < most; i++, at = _PyGCHead_NEXT(at), back = _PyGCHead_PREV(back)) {
    if (at == young || back == wanted) return 1;
    if (back == young) return -1;
    for (int older = 1; older < NUM_GENERATIONS; older++)
      if (at == &generations[older].head) return -1;
  }
  return 0;
}

void cresset_eval_visit_young(PyObject** mark, void (*visit)(void*, PyObject*), void* arg) {
  struct gc_generation* generations = PyThreadState_Get()->interp->gc.generations;
  PyGC_Head* const young = &generations[0].head;
  PyGC_Head* at = _PyGCHead_NEXT(young);
  if (*mark != NULL) {
    at = _PyGCHead_NEXT(_Py_AS_GC(*mark));
    while (at != young && at != &generations[1].head && at != &generations[2].head) {
      visit(arg, (PyObject*)(at + 1));
      at = _PyGCHead_NEXT(at);
    }
    if (at != young) at = _PyGCHead_NEXT(young);  // a collection has taken the mark along
  }
  for (; at != young; at = _PyGCHead_NEXT(at)) visit(arg, (PyObject*)(at + 1));
  if (*mark == NULL && (*mark = PyList_New(0)) == NULL) return PyErr_Clear();
  PyObject_GC_UnTrack(*mark);
  PyObject_GC_Track(*mark);  // at the end
}
