// Tensors which the previous segment passed in frame variables and which have no other owner. The program of the
// segment releases them as early as the assignments of the Python code would.
#pragma once

#include <vector>

#include "frontend/cache_entries/cache_entry.h"

namespace cresset::frontend {

// The places of these tensors; the cache entry begins after a graph break.
std::vector<PlaceInFrames> released_inputs(const CacheEntry& entry);

// Removes the tensors from the frames, whose tuples have no other owner and are not read again.
void take_out(const std::vector<PlaceInFrames>& released, PyObject* frames);

}  // namespace cresset::frontend
