// Functions of Python that an assignment to an attribute runs.
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// The Python function that owner.name = value, or `del owner.name`, has to run: it takes `args` and then the
// value. All are borrowed.
typedef struct {
  PyObject* function;
  PyObject* found;  // the descriptor, in a class of type(owner)'s; NULL: it is a special method of that class
  PyObject* args[2];
  int count;
} CressetChanger;
// 1: found; 0: C code does it. by_object: of what object.__setattr__ does, or object.__delattr__, or type's.
int cresset_find_changer(PyObject* owner, PyObject* name, int deletes, int by_object, CressetChanger* changer);

#ifdef __cplusplus
}
#endif
