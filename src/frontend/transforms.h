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

// Runs an operator on tensors inside of a transform. nullptr, with the exception set, when it raised.
PyRef run_on_wrappers(bridge::Capture& capture, const std::function<PyRef()>& run);
// Whether the derivative of this operator, inside of torch.func.grad, keeps sizes that must be plain.
bool keeps_sizes(const char* name);
// Whether a call that is known to change nothing is such an operator: no Python code can come of it.
bool is_operator_on_wrappers(const char* name, const CressetCall& call);

// Forward differentiation keeps tangents where nobody else sees them, at a level that such a C function enters (+1) or
// leaves (-1); 0: another function.
int changes_level(std::string_view name);

}  // namespace cresset::frontend
