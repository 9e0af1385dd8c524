// Decides which values get memory of their own. What is not in memory is recomputed inside every kernel that reads it.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "base/compile_options.h"
#include "fuse/memory.h"

namespace cresset::fuse {

// Pointwise values in memory that read a concatenation which is not: they are computed section by section, so that the
// concatenation is never written. By value, the concatenation.
using Sections = std::unordered_map<ValueId, ValueId>;

// Gives memory to: results of extern calls and reductions; concatenations, but for those that one pointwise value reads
// element by element; what extern calls, outputs and mutations need in memory; values used several times that cost more
// than a load; heavy values read by something larger. `stored`: concatenations that must be in memory.
Sections materialize(const Graph& graph, const driver::Options& options, const std::unordered_set<ValueId>& stored,
                     Memory& memory);

}  // namespace cresset::fuse
