// Running a Python callable under capture.
#pragma once

#include <memory>

#include "frontend/compiled_function.h"

namespace cresset::frontend {

// Runs `function` once on stand-ins and fills in the variant's entry and recipe, or its eager_reason. A Python
// exception raised by the function leaves eager_reason set and no exception pending: the caller runs the call for real,
// and what eager raises is what the user sees. Throws PythonError for misuse (a marked dimension that must be static).
void capture_call(PyObject* function, PyObject* args, PyObject* kwargs, const CompileOptions& options,
                  const CallLeaves& leaves, Variant& variant, ShapeProfile* profile);

// True on the thread that is inside capture_call.
bool is_capturing();

}  // namespace cresset::frontend
