// Running a Python callable under capture.
#pragma once

#include <memory>

#include "frontend/compiled_function.h"

namespace cresset::frontend {

// Runs `function` once, for real, deferring its operators, and fills in the variant's entry and recipe, or its
// eager_reason when later calls cannot be served by them. Returns what the function returned, with every tensor real;
// nullptr with the exception that the function raised (then variant.raised: nothing is learned from the call). Throws
// PythonError for misuse (a marked dimension that must be static).
PyRef capture_call(PyObject* function, PyObject* args, PyObject* kwargs, const CompileOptions& options,
                   const CallLeaves& leaves, Variant& variant);

// True on the thread that is inside capture_call.
bool is_capturing();

}  // namespace cresset::frontend
