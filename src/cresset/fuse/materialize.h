// Decides which values get memory of their own. What is not in memory is recomputed inside every kernel that reads it.
#pragma once

#include "compile/options.h"
#include "fuse/memory.h"

namespace cresset::fuse {

// Gives memory to: results of extern calls, reductions and concatenations; what extern calls, outputs and mutations
// need in memory; values used several times that cost more than a load; heavy values read by something larger.
void materialize(const Graph& graph, const driver::Options& options, Memory& memory);

}  // namespace cresset::fuse
