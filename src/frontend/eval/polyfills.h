// Polyfills: Python functions evaluated for an instruction that takes all items of an iterator of the program.
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  PyObject* list_of;               // list_of(iterator)
  PyObject* first_of;              // first_of(iterator, count): at most count + 1 items
  PyObject* assign;                // assign(owner, name, value)
  PyObject* data_of;               // data_of(tensor)
  PyObject* attribute_of;          // attribute_of(owner, name)
  PyObject* set_item;              // set_item(container, key, value)
  int (*runs_program)(PyObject*);  // whether taking its items runs code of the program
} CressetPolyfills;

extern CressetPolyfills cresset_polyfills;

// Keeps the functions for good.
void cresset_eval_use(const CressetPolyfills* polyfills);

// Whether a polyfill must take the items.
static inline int cresset_takes_items_of(PyObject* values) {
  if (cresset_polyfills.list_of == NULL || PyList_CheckExact(values) || PyTuple_CheckExact(values)) return 0;
  return cresset_polyfills.runs_program(values);
}

#ifdef __cplusplus
}
#endif
