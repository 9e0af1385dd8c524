// Context variables that a piece sets, and has not set back where it must end.
#pragma once

#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// The call in progress sets the variable.
void note_set(PyObject* variable, const CressetActivation& activation, const CressetCall& call);
// From the next capture on that call is done between two pieces, and what it gives is handed on. Whether that is news.
bool set_apart(PyObject* variable);

}  // namespace cresset::frontend
