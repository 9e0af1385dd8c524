// The compiled function behind a Python object.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include "frontend/api/compiled_function.h"

namespace cresset::python {

// Raises TypeError for other objects.
inline frontend::CompiledFunction& state_of(const pybind11::object& object) {
  frontend::CompiledFunction* state = frontend::as_compiled_function(object.ptr());
  if (state == nullptr) throw pybind11::type_error("expected a function compiled by cresset");
  return *state;
}

}  // namespace cresset::python
