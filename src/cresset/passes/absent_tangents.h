// The part of a backward program which remains when some results have no gradients.
//
// Autograd does not compute with missing gradients. A value computed from missing gradients alone is also missing, and
// a sum with a missing term is its other term. Zeros in their place would waste work and change results: 0 * inf is
// NaN. Any other operator with both missing and present gradients (the parts of a concatenation) receives zeros, as in
// autograd's formulas.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace cresset::passes {

// Rewrites a backward program, given by its order and its outputs, for a pass in which some tangents are missing.
// `given` says, by position, which tangents exist. The program must be linear in its tangents. Autograd's formulas are
// linear; custom functions of users may not be. Returns which outputs are missing; their values are meaningless. Each
// remaining output is the result of a separate node.
std::vector<bool> without_tangents(graph::Graph& graph, std::vector<graph::NodeId>& order,
                                   std::vector<graph::ValueId>& outputs, std::span<const graph::ValueId> tangents,
                                   const std::vector<bool>& given);

}  // namespace cresset::passes
