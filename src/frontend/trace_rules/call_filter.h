// The C functions which the special cases of calls handle, by identity. Most calls are of other functions and skip the
// special cases.
#pragma once

#include <Python.h>

#include <cstdint>

#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// The property of the callable for which special cases exist.
enum SpecialCall : uint8_t {
  kOrdinaryCall = 0,    // a module or torch function, or a method of a C class, without a special case
  kAsksType = 1,        // isinstance()
  kNamesAttribute = 2,  // getattr() and related functions: checked together with the attribute names
  kAnyCall = 0xFF,      // has a polyfill (polyfills.h), or handles strings, numbers, layouts, frames; unknown kind
};
uint8_t special_call(PyObject* callable);
// Registers the original of a polyfilled call for the whole process; also for the definition of a method.
void note_special_call(const void* original);

// Answers isinstance() and related functions for symbolic numbers and tensors as for plain objects.
CressetAction ask_type(const CressetCall& call, PyObject** result);

}  // namespace cresset::frontend
