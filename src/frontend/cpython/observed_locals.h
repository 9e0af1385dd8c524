// Whether a callee may read the function's locals (frame.f_back.f_locals). All locals are then kept at a graph break,
// including locals which the function's own code no longer reads.
#pragma once

#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// Decides by the names in the code, and in the code of functions reachable through these names by a short chain.
bool may_look_at_locals(const CressetFrameImage& image);

}  // namespace cresset::frontend
