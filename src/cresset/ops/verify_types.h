// Compares the types in a graph with the operators' shape rules. This part of graph::verify needs the rules.
#pragma once

#include <string>

#include "graph/graph.h"

namespace cresset::ops {

// Returns an empty string when the results of each node with a native rule have the rule's dtype, rank and (provably)
// sizes. Otherwise returns a description of the first violation. Strides are not compared, since decompositions keep
// the strides of the replaced values.
std::string verify_types(graph::Graph& graph, DType default_dtype = DType::F32);

}  // namespace cresset::ops
