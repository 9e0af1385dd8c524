// Captures inside of torch.func's transforms: vmap, grad, jvp and functions built from them.
//
// A transform wraps tensors in wrapper tensors which copy their sizes, including symbolic sizes. Most of torch reads
// sizes of wrappers as symbolic sizes; code which requires plain sizes fails with an error of torch. When a segment
// ends inside of a transform, the wrappers therefore receive plain sizes. An operator which fails with this error ends
// the segment and runs again.
#pragma once

#include <string_view>

#include "bridge/capture/capture.h"
#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"
#include "frontend/values/transform_state.h"

namespace cresset::frontend {

// Gives all wrappers held by Python the sizes of their wrapped tensors, which are real.
void settle_wrappers();

// Whether the raised error reports a missing plain size, which never occurs in eager mode.
bool lacks_plain_sizes();
// Runs an operator on tensors inside of a transform. If the operator requires plain sizes, the segment ends and
// run_plainly is called. Returns nullptr with an exception set when the operator raised.
PyRef run_on_wrappers(bridge::Capture& capture, const std::function<PyRef()>& run,
                      const std::function<PyRef()>& run_plainly);
// The same for a call.
PyRef call_on_wrappers(bridge::Capture& capture, const CressetCall& call);
// Whether into[...] = value gives the first tangent to a view of `into`. torch then reads the storage offset as a plain
// number.
bool is_first_tangent(PyObject* into, PyObject* value);
// Whether a C function with this name enters a level of torch.func.vmap.
bool begins_batching(const char* name);
// Whether the derivative of this operator, inside of torch.func.grad, stores sizes which must be plain.
bool keeps_sizes(const char* name);
// Whether a call without side effects is an operator on wrappers which runs no Python code.
bool is_operator_on_wrappers(const char* name, const CressetCall& call);

// The change of the forward differentiation level by a C function: +1 when it enters a level, -1 when it leaves, 0
// otherwise. Tangents of a level are invisible to the rest of the capture.
int changes_level(std::string_view name);

}  // namespace cresset::frontend
