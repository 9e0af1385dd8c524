// Tensors that a piece was handed by the one before it in the frames' variables, and that nobody else has: where the
// program may, it lets go of them as it goes, as the program's own assignments would.
#pragma once

#include <vector>

#include "frontend/variant.h"

namespace cresset::frontend {

// Where those are that the variant's program lets go of; the variant begins behind a break.
std::vector<PlaceInFrames> released_inputs(const Variant& variant);

// Takes them out of the frames, which the program leaves for good: nobody else has these tuples.
void take_out(const std::vector<PlaceInFrames>& released, PyObject* frames);

}  // namespace cresset::frontend
