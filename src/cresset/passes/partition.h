// The partitioner: decides which values the backward program receives from the forward program, and which it
// recomputes.
//
// Saving a value costs memory between the two programs and memory traffic. Recomputing it costs arithmetic, which
// mostly hides behind the backward program's own traffic. The partitioner therefore minimizes the saved bytes by a
// minimum cut. Sources of the cut are inputs and results which are neither pointwise nor views; these must come from
// the forward program. Sinks are the values mentioned in the backward program. Among several minimum cuts, the nearest
// to the backward program is taken, which recomputes least. Rematerialization as a cut is the idea of torch's min-cut
// partitioner; the flow algorithm is Dinic's (1970).
#pragma once

#include <span>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace cresset::passes {

struct Partition {
  std::vector<graph::ValueId> saved;      // inputs, constants and results of the forward program, by definition
  std::vector<graph::NodeId> recomputed;  // nodes of the forward program, in its order
};

// needed: values of the graph mentioned in the backward program. changing: inputs, constants and outputs whose contents
// may change before the backward pass; saving one of them means saving a copy. Sizes are weighed by their hints;
// nothing else uses the hints.
Partition partition(const graph::Graph& graph, std::span<const graph::ValueId> needed,
                    const std::unordered_set<graph::ValueId>& changing = {});

}  // namespace cresset::passes
