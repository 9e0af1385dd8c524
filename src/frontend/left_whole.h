// Calls and operators that a piece cannot end inside of: of C code that calls back (a custom function's `apply`, an
// `__add__` in Python), of torch.func's transforms, of checkpoints. Where one had to, the rest of that call of the
// program runs natively and nothing is kept of the piece; from the next capture on a piece ends where the program makes
// the inner call, which is done natively as a whole, and the next one begins behind it. Known to the function alone
// (feedback.h).
#pragma once

#include "frontend/eval/hooks.h"

namespace cresset::frontend {

inline constexpr const char* kLeftWhole = "a call inside of which a piece cannot end";

// What is called, by its code: a closure is another function at each call. nullptr: an operator. Borrowed: it lives as
// long as the call does, which the callable (a method bound for it) need not.
inline PyObject* kind_of_callable(PyObject* callable) {
  if (callable == nullptr) return nullptr;
  if (PyMethod_Check(callable)) callable = PyMethod_GET_FUNCTION(callable);
  if (PyFunction_Check(callable)) return PyFunction_GET_CODE(callable);
  return PyType_Check(callable) ? callable : (PyObject*)Py_TYPE(callable);
}

// So that leave_whole() knows.
inline void note_callable(CressetActivation* activation, PyObject* callable) {
  activation->user = kind_of_callable(callable);
}

// innermost: where a piece has to end, and cannot. Whether there is such a call around it of which that was not known.
// Under the GIL, as all of this.
bool leave_whole(const CressetActivation* innermost);
// Likewise of the call or the operator that an activation is in the middle of, or of the program's around it: C code
// asked tensors there, or what was called holds what cannot be rebuilt.
bool leave_whole_at(const CressetActivation* caller);
// That call, which need not be in progress.
bool leave_call_whole(PyCodeObject* code, int instruction, PyObject* callable);
// callable: nullptr of an operator.
bool is_left_whole(const CressetActivation& activation, PyObject* callable);

// Of the function whose call this thread captures: whether regions of inference mode are entered between two pieces,
// since a piece had to end inside of one. It is done by the guard's C++ code, which a later call does likewise.
void enter_inference_apart(bool apart);
bool enters_inference_apart(PyObject* callable);

}  // namespace cresset::frontend
