// The user's instructions on calls of functions: the functions behind `cresset.disable` and `cresset.allow` mark a
// function, and the call modes here answer what becomes of its calls.
#pragma once

#include <Python.h>

#include <cstdint>

#include "base/break_reason.h"

namespace cresset::frontend {

// The treatment of a Python function during capture, from a table keyed by identity.
enum class CallMode : uint8_t {
  Evaluated,
  Native,    // runs in CPython without read hooks; tensor operators are captured
  Disabled,  // graph break; the function runs for real
};
// `caller`: the code that makes the call.
CallMode call_mode(PyObject* callable, PyCodeObject* caller);
// Runs what awaits the first call of the function's module (_mark_when_met): substitutes and marks of its functions.
// Modules need not be imported for that.
void meet_function(PyObject* function);
// The user's reason for disabling the function.
BreakReason why_disabled(PyObject* callable);

// torch's marks on functions of the program. torch.compiler.assume_constant_result: the result is a constant of the
// program. `_dynamo_forbidden`: the function must not be called in compiled code (torch.compiler.set_stance, ...).
bool is_assumed_constant(PyObject* callable);
bool is_forbidden(PyObject* callable);

// Whether the user declared the C function pure: it reads only its arguments and has no side effect.
bool is_allowed(PyObject* callable);

// Sets the mode of a function. why: None, to run it in CPython; a str, the reason for disabling. kind: the kind of the
// reason, by its name; may be null. outside_torch: calls by torch's own code do not count. Throws PythonError.
void mark_function(PyObject* function, PyObject* why, const char* kind, bool outside_torch);

// Module functions: _mark_of(function): (None,) or (why,) of a marked function, else None. _mark_when_met(name, marks):
// `marks` is called before the first function of the module is. allow(function): the C function is pure.
PyObject* mark_of(PyObject* module, PyObject* function);
PyObject* mark_when_met(PyObject* module, PyObject* args);
PyObject* allow(PyObject* module, PyObject* callable);

}  // namespace cresset::frontend
