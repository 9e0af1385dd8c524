// Functions that are evaluated where an instruction takes all items of an iterator of the program's.
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { kMaxIteratorEquivalents = 8 };
typedef struct {
  PyObject* list_of;                             // list_of(iterator)
  PyObject* first_of;                            // first_of(iterator, count): at most one more than that
  PyObject* iterators[kMaxIteratorEquivalents];  // classes whose instances are such iterators, as generators are
} CressetEquivalents;

extern CressetEquivalents cresset_equivalents;

// Keeps what it is given, for good.
void cresset_eval_use(const CressetEquivalents* equivalents);

// Whether the items are to be taken by a function of these.
static inline int cresset_takes_items_of(PyObject* values) {
  if (cresset_equivalents.list_of == NULL) return 0;
  if (PyGen_CheckExact(values)) return 1;
  for (int i = 0; i < kMaxIteratorEquivalents && cresset_equivalents.iterators[i] != NULL; i++) {
    if ((PyObject*)Py_TYPE(values) == cresset_equivalents.iterators[i]) return 1;
  }
  return 0;
}

#ifdef __cplusplus
}
#endif
