// Operations of a program that are not to be done as others of their kind are.
#pragma once

#include "frontend/eval/hooks.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

// Whether operators on plain tensors call Python code of the user's, which is to be seen: under a mode.
bool operators_call_python();

// numpy's scalars decide what comes of an operator by the type of the other operand: a symbolic one is pinned. Empty
// for other operands. Throws PythonError.
PyRef with_numpy_scalar(const CressetOperator& op);

// Module._call_impl asks whether something is compiled, and if so forgets the hooks that are to be called always.
// Whether this is that question: it is answered with no.
bool leaves_out_hooks(const CressetActivation& activation, const CressetCall& call);

}  // namespace cresset::frontend
