// The text that decides what a graph is compiled to: for keys of caches, never to be read back.
#pragma once

#include <string>

#include "graph/graph.h"

namespace cresset::graph {

// As print(), without what says nothing about the code: names of inputs, lines of the user's program, hints, symbols
// that are not used or were pinned (these are written as the constants that they are). With what the lowering may rely
// on beside the graph: ranges, guards and assertions on the symbols that are used.
std::string canonical_text(const Graph& graph);

}  // namespace cresset::graph
