// Whether what a function calls may look at the function's locals (frame.f_back.f_locals): they are kept at a break
// then, also those that the function's own code will not read any more.
#pragma once

#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// By the names in its code, and in the code of functions that it finds by them: as far as such a chain is short.
bool may_look_at_locals(const CressetFrameImage& image);

}  // namespace cresset::frontend
