// The canonical string of a graph for cache keys. It determines the compiled code and is never parsed.
#pragma once

#include <string>

#include "graph/graph.h"

namespace cresset::graph {

// Like print(), without parts which do not influence the code: names of inputs, source locations, hints, unused
// symbols. Specialized symbols are written as constants. The string also has the facts on which the lowering may rely:
// ranges, guards and assertions on the used symbols.
std::string canonical_text(const Graph& graph);

}  // namespace cresset::graph
