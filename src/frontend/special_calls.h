// Which C functions the special cases of calls are about, by identity: nobody asks them about the others, which most
// calls are of.
#pragma once

#include <Python.h>

#include <cstdint>

#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// What a special case asks of the callable itself.
enum SpecialCall : uint8_t {
  kOrdinaryCall = 0,    // a function of a module or of torch, or a method of a C class, that no special case is about
  kAsksType = 1,        // isinstance()
  kNamesAttribute = 2,  // getattr() and its kin: looked at with their names
  kAnyCall = 0xFF,  // evaluated otherwise (equivalents.h), or of texts, numbers, layouts, frames; or of unknown kind
};
uint8_t special_call(PyObject* callable);
// What is evaluated in the place of calls, by the original: for good. Likewise of the definition of a method.
void note_special_call(const void* original);

// isinstance() of a symbolic number or of a tensor, and its kin: answered as of plain ones, where they are about such.
CressetAction ask_type(const CressetCall& call, PyObject** result);

}  // namespace cresset::frontend
