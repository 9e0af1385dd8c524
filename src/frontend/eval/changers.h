// Python functions run by an assignment to an attribute.
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// The Python function that owner.name = value, or `del owner.name`, has to run: it takes `args` and then the value. All
// are borrowed.
typedef struct {
  PyObject* function;
  // The descriptor in a class of type(owner)'s MRO; NULL: the function is a special method of the class.
  PyObject* found;
  PyObject* args[2];
  int count;
} CressetChanger;
// 1: found; 0: C code does it. by_object: the write is done by __setattr__ or __delattr__ of object or type.
int cresset_find_changer(PyObject* owner, PyObject* name, int deletes, int by_object, CressetChanger* changer);

#ifdef __cplusplus
}
#endif
