// The part of a backward program that is left where some results have no gradients.
//
// Autograd does not compute with gradients that are not there: what would come of them alone is not there either, and a
// sum with one is its other term. Zeros in their place would be work for nothing, and not the same: 0 * inf is NaN.
// What else takes a missing gradient beside one that is there (the pieces of a concatenation) is given zeros, as
// autograd's formulas do.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace cresset::passes {

// Rewrites a backward program, given by its order and what it computes, for a pass in which the `absent` tangents are
// not there. The program must be linear in its tangents: formulas of autograd's are, functions of users may not be.
// Returns which of the outputs are not there either; what stands for those means nothing. The others stay results of
// nodes, each of its own.
std::vector<bool> without_tangents(graph::Graph& graph, std::vector<graph::NodeId>& order,
                                   std::vector<graph::ValueId>& outputs, std::span<const graph::ValueId> tangents,
                                   const std::vector<bool>& given);

}  // namespace cresset::passes
