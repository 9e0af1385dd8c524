// Branches on sizes that decide nothing: `if n != 1: x = x.expand(n, -1)`, where x has one row. A program that expands
// to one row has the values of one that does not, so both outcomes are the general one's, and no guard is needed.
#pragma once

#include <functional>

#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// Does what the arm of the jump in progress would do, when the arm is such a view under the symbolic condition's
// contrary: the jump is then to be taken. False otherwise, with nothing done.
// existed: whether an object is older than the call; such a one is the caller's, and may be compared with what it gets.
bool do_spared_view(CressetActivation* activation, PyObject* condition, const std::function<bool(PyObject*)>& existed);

}  // namespace cresset::frontend
