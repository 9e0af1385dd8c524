// len() of containers in state. The length of a list which grows at each call is a varying number, and the items need
// no guard. Also len() of plain data among the arguments, which is no inspection of the items.
#pragma once

#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"

namespace cresset::frontend {

class Session;

// The length, without a read of the items. Empty for other calls, and when the items are guarded already or must be.
PyRef length_in_state(const CressetCall& call, Session& session);

}  // namespace cresset::frontend
