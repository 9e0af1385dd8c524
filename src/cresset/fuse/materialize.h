// Decides which values get memory. A value without memory is recomputed inside every kernel which reads it.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "base/compile_options.h"
#include "fuse/memory.h"

namespace cresset::fuse {

// Maps a pointwise value in memory to the concatenation which it reads and which has no memory. The value is computed
// section by section, so the concatenation is never written.
using Sections = std::unordered_map<ValueId, ValueId>;

// Gives memory to results of extern calls and reductions, and to arguments of extern calls, outputs and mutations.
// Concatenations get memory unless a single pointwise value reads them element by element. Also stored are values with
// several uses which cost more than a load, and heavy values read by a larger value. `stored`: concatenations which
// must be in memory.
Sections materialize(const Graph& graph, const driver::Options& options, const std::unordered_set<ValueId>& stored,
                     Memory& memory);

}  // namespace cresset::fuse
