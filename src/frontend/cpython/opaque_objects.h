// Foreign objects, whose state only C code knows: arrays, buffers, files, instances of extension types. No guard covers
// their contents. A program which inspects a foreign object from before the call gets a graph break.
#pragma once

#include <functional>

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// Returns false for immutable objects and for objects covered by guards: instances of Python classes, containers,
// functions, ...
bool is_foreign(PyObject* object);

// Whether the object can be passed on uninspected when its identity differs at each call. This holds for foreign
// objects and for values with C arithmetic (bytes, numpy scalars, decimals, dates). The latter are guarded by value
// while they stay the same.
bool can_be_opaque(PyObject* object);
// Whether the object is a C++ inference guard of torch which an eager fallback has entered and will leave.
bool is_inference_region(PyObject* object);

// Whether `is` holds for an object in a tuple, list, slice or dict, searched recursively.
bool holds_any(PyObject* container, const std::function<bool(PyObject*)>& is);

// Returns false for C functions which may inspect the contents of container arguments, such as torch.stack and str.
// Returns true for len, list.append and similar functions.
bool hands_items_on(PyObject* callable);

// Whether the type is a class of foreign objects, defined in C. numpy scalars are excluded.
bool makes_foreign(PyTypeObject* type);

// Whether only class statements lie between `base` and `type`, so that `base` describes the C fields of an instance.
bool derives_in_python(const PyTypeObject* type, const PyTypeObject* base);

// The container behind a view (dict.keys(), types.MappingProxyType): borrowed; nullptr for other objects.
PyObject* viewed(PyObject* object);

// The cache of a `functools.lru_cache` function. Empty refs when `function` is another object, or when it caches
// nothing.
struct FunctionCache {
  PyRef cache;  // its dict
  PyRef key;    // of this call
};
// kwnames: as in a vectorcall; may be null.
FunctionCache function_cache(PyObject* function, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

}  // namespace cresset::frontend
