// Objects whose state only C code knows: arrays, buffers, files, instances of extension types. No fact says what they
// hold, so a program that looks into one that was there before the call ends its piece there.
#pragma once

#include <functional>

#include "frontend/py_ref.h"

namespace cresset::frontend {

// False for what never changes and for what facts speak of: instances of Python classes, containers, functions, ...
bool is_foreign(PyObject* object);

// Whether it can be handed on unseen where it is another one at each call: those, and values that C code alone computes
// with (bytes, numpy's numbers, decimals, dates), of which facts speak while they are the same.
bool can_be_opaque(PyObject* object);
// A guard of torch's in C++, which a native stretch has entered and will leave.
bool is_inference_region(PyObject* object);

// Whether `is` holds for something in a tuple, list, slice or dict, or in those that it holds.
bool holds_any(PyObject* container, const std::function<bool(PyObject*)>& is);

// False for C functions that may look into what containers among their arguments hold: torch.stack, str, unlike len
// and list.append.
bool hands_items_on(PyObject* callable);

// Whether it is a class of such objects that C code made. Not numpy's scalars.
bool makes_foreign(PyTypeObject* type);

// Whether class statements alone lead from `base` to `type`, so that `base` tells what C code keeps in an instance.
bool derives_in_python(const PyTypeObject* type, const PyTypeObject* base);

// The container that a view shows (dict.keys(), types.MappingProxyType): borrowed; nullptr for other objects.
PyObject* viewed(PyObject* object);

// What a function of functools.lru_cache keeps. Empty refs when `function` is none, or when it keeps nothing.
struct FunctionCache {
  PyRef cache;  // its dict
  PyRef key;    // of this call
};
// kwnames: as of a vectorcall; may be null.
FunctionCache function_cache(PyObject* function, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

}  // namespace cresset::frontend
