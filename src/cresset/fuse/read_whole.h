// Values of which every element is computed in any case.
#pragma once

#include <vector>

#include "fuse/memory.h"

namespace cresset::fuse {

// By value: whether it is in memory, or a value of which this holds needs all its elements. `memory` has the values
// that are in memory whatever the costs; operators which report indices count as computed whole. False where nothing is
// known.
std::vector<bool> read_whole(const Graph& graph, Memory& memory);

}  // namespace cresset::fuse
