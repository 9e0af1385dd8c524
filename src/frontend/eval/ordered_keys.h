// The order of keys in an OrderedDict.
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// A new list of the keys of an OrderedDict, first to last. Iterating over the dictionary hashes each key again, which a
// `__hash__` of the program would notice; this function hashes none. NULL with an exception set.
PyObject* cresset_eval_ordered_keys(PyObject* ordered);

#ifdef __cplusplus
}
#endif
