// Branches on sizes which need no guard: `if n != 1: x = x.expand(n, -1)`, where x has a single row. Expanding to a
// single row does not change the values. The general branch is therefore correct for both outcomes.
#pragma once

#include <functional>

#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// Executes the arm of the jump in progress when the arm is a view of this kind under the negated symbolic condition.
// Returns true if the jump is then taken; otherwise false, without a side effect. existed: whether an object is older
// than the call. An older object belongs to the caller, who may compare its identity with the result's.
bool do_spared_view(CressetActivation* activation, PyObject* condition, const std::function<bool(PyObject*)>& existed);

}  // namespace cresset::frontend
