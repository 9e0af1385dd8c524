// Opaque calls and operators, inside of which no segment can end: C code which calls back (a custom function's `apply`,
// an `__add__` in Python), transforms of torch.func, checkpoints. When a break is necessary inside, the rest of the
// program's call runs in CPython and the segment is discarded. From the next capture on a segment ends before the inner
// call. CPython runs the inner call as a whole, and the next segment begins behind it. The record belongs to the
// compiled function (feedback.h).
#pragma once

#include "frontend/eval/hooks.h"

namespace cresset::frontend {

inline constexpr const char* kOpaqueCall = "a call inside of which no graph break is possible";

// The code of the callable, because a closure is a new function at each call. nullptr: an operator. Borrowed: the code
// lives as long as the call, unlike the callable, which may be a temporary bound method.
inline PyObject* kind_of_callable(PyObject* callable) {
  if (callable == nullptr) return nullptr;
  if (PyMethod_Check(callable)) callable = PyMethod_GET_FUNCTION(callable);
  if (PyFunction_Check(callable)) return PyFunction_GET_CODE(callable);
  return PyType_Check(callable) ? callable : (PyObject*)Py_TYPE(callable);
}

// Stores the kind of the callable for leave_whole().
inline void note_callable(CressetActivation* activation, PyObject* callable) {
  activation->user = kind_of_callable(callable);
}

// innermost: the frame where a segment must end and cannot. Returns whether an opaque call lies around it which was not
// yet recorded. All functions here need the GIL.
bool leave_whole(const CressetActivation* innermost);
// Does the same for the call or operator which an activation is executing, or for the program's call around it. Used
// when C code inside asked for tensor data, or when the callee holds objects without a reconstruction.
bool leave_whole_at(const CressetActivation* caller);
// Records this call, which need not be in progress.
bool leave_call_whole(PyCodeObject* code, int instruction, PyObject* callable);
// callable: nullptr for an operator.
bool is_opaque_call(const CressetActivation& activation, PyObject* callable);

// For the function whose call this thread captures: whether inference-mode regions are entered between two segments,
// because a segment had to end inside of a region. The guard's C++ code enters the region, and runs again at a later
// call.
void enter_inference_apart(bool apart);
bool enters_inference_apart(PyObject* callable);

}  // namespace cresset::frontend
