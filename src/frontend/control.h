// What a program says to the compiler while it is captured: functions behind cresset.disable, graph_break, comptime and
// their kin (python/cresset/_control.py).
#pragma once

#include <Python.h>

#include <string>

namespace cresset::frontend {

// How a Python function is to be called while a program is captured, as a table says that is keyed by identity.
enum class CallMode : uint8_t {
  Evaluated,
  Native,    // in CPython's evaluator, what it reads unseen; operators on tensors are captured
  Disabled,  // the piece ends, and the function runs for real
};
CallMode call_mode(PyObject* callable);
// Of a disabled one: why, as the user's reason says.
std::string why_disabled(PyObject* callable);

// A C function that the user vouches for: looks at nothing that changes but its arguments, changes nothing.
bool is_allowed(PyObject* callable);

void add_control_functions(PyObject* module);

}  // namespace cresset::frontend
