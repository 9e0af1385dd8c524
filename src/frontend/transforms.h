// Captures inside of torch.func's transforms: vmap, grad, jvp and what is made of them.
//
// A transform wraps tensors in others that copy their sizes, symbolic ones as they are. Most of torch asks wrappers for
// sizes that may be symbolic; what asks for plain ones fails with an error of torch's own. So when a piece ends inside
// of a transform, wrappers are given the numbers; and an operator that fails for that reason ends the piece and is done
// again.
#pragma once

#include <string_view>

#include "bridge/capture.h"
#include "frontend/eval/hooks.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

// Of this thread.
bool inside_transform();

// Gives all wrappers that Python holds the sizes of what they wrap, which is real.
void settle_wrappers();

// Whether what is raised says that plain sizes were asked for, which eager never says.
bool lacks_plain_sizes();
// Runs an operator on tensors inside of a transform; where it wants plain sizes the piece ends, and it is run plainly.
// nullptr, with the exception set, when it raised.
PyRef run_on_wrappers(bridge::Capture& capture, const std::function<PyRef()>& run,
                      const std::function<PyRef()>& run_plainly);
// Likewise of a call.
PyRef call_on_wrappers(bridge::Capture& capture, const CressetCall& call);
// into[...] = value gives the first tangent to a view of `into`, whose place torch asks for as a plain number then.
bool is_first_tangent(PyObject* into, PyObject* value);
// Whether a C function of this name enters a level of torch.func.vmap.
bool begins_batching(const char* name);
// Whether the derivative of this operator, inside of torch.func.grad, keeps sizes that must be plain.
bool keeps_sizes(const char* name);
// Whether a call that is known to change nothing is such an operator: no Python code can come of it.
bool is_operator_on_wrappers(const char* name, const CressetCall& call);

// Forward differentiation keeps tangents where nobody else sees them, at a level that such a C function enters (+1) or
// leaves (-1); 0: another function.
int changes_level(std::string_view name);

}  // namespace cresset::frontend
