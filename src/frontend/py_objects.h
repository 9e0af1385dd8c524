// What the C API leaves to say about objects: instance dictionaries, their versions, tuples of a given type.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/py_ref.h"

namespace cresset::frontend {

// Borrowed; nullptr when the object has none, or has not made it yet.
PyObject* instance_dict(PyObject* object);
// Changes with the dictionary; 0: it changes without a trace.
uint64_t dict_version(PyObject* dict);
// module.name, kept for good: for static variables. Throws PythonError when there is none.
PyObject* module_attribute(const char* module, const char* name);
// A torch.Tensor or a Parameter, of no subclass; false for nullptr.
bool is_plain_tensor(PyObject* object);
// An instance of numpy.generic: immutable, and compared by value.
bool is_numpy_scalar(PyObject* object);
PyRef tuple_of(const std::vector<PyRef>& items);
// A tuple's items as a tuple of this type: a named tuple, torch.Size, a torch.return_types.
PyRef tuple_as(PyObject* type, PyRef items);

}  // namespace cresset::frontend
