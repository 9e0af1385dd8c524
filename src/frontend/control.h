// Instructions of a program to the compiler during capture: the functions behind `cresset.disable`, `graph_break`,
// `comptime` and related functions (python/cresset/_control.py).
#pragma once

#include <Python.h>

#include "base/break_reason.h"

namespace cresset::frontend {

// The treatment of a Python function during capture, from a table keyed by identity.
enum class CallMode : uint8_t {
  Evaluated,
  Native,    // runs in CPython without read hooks; tensor operators are captured
  Disabled,  // graph break; the function runs for real
};
CallMode call_mode(PyObject* callable);
// The user's reason for disabling the function.
BreakReason why_disabled(PyObject* callable);

// Whether the user declared the C function pure: it reads only its arguments and has no side effect.
bool is_allowed(PyObject* callable);

void add_control_functions(PyObject* module);

}  // namespace cresset::frontend
