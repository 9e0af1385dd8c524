// What a backward program is given of its forward program, and what it computes again.
//
// Saving a value costs memory between the two programs and its traffic; computing it again costs arithmetic that mostly
// hides behind the backward program's own traffic. So the bytes that are saved are made least: a minimum cut between
// what must come from the forward program (inputs, and what is no pointwise operator or view) and what the backward
// program mentions. Of several least cuts the one nearest to the backward program: less is computed again.
// The idea of rematerialization as a cut is that of torch's min-cut partitioner; the flow is Dinic's (1970).
#pragma once

#include <span>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace cresset::passes {

struct Partition {
  std::vector<graph::ValueId> saved;      // inputs, constants and results of the forward program, as they are defined
  std::vector<graph::NodeId> recomputed;  // nodes of the forward program, in its order
};

// needed: values of the graph that the backward program mentions. changing: inputs and constants that may hold
// something else by then, so that saving one is saving a copy. Sizes are weighed by their hints; nothing else looks at
// those.
Partition partition(const graph::Graph& graph, std::span<const graph::ValueId> needed,
                    const std::unordered_set<graph::ValueId>& changing = {});

}  // namespace cresset::passes
