// Context variables which a graph segment sets and has not reset when it must end.
#pragma once

#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// Records the call in progress, which sets the variable.
void note_set(PyObject* variable, const CressetActivation& activation, const CressetCall& call);
// From the next capture on, the call which sets the variable runs between two segments, and its result is an input of
// the next segment. Returns whether the call was not yet listed.
bool set_apart(PyObject* variable);

}  // namespace cresset::frontend
