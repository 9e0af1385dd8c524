// The order in which an OrderedDict keeps its keys.
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// A new list of the keys of an OrderedDict, first to last. Iterating over one hashes each key again, which a key whose
// `__hash__` is the program's would notice; here none is asked. NULL with an exception set.
PyObject* cresset_eval_ordered_keys(PyObject* ordered);

#ifdef __cplusplus
}
#endif
