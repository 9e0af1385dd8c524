// Whether the types in a graph are those that the operators' shape rules give: the part of graph::verify that needs
// rules.
#pragma once

#include <string>

#include "graph/graph.h"

namespace cresset::ops {

// Empty when each node with a native rule has results of the dtype, rank and (provably) sizes that the rule says, else
// the first violation, for people. Strides are not compared: decompositions take over those of what they replace.
std::string verify_types(graph::Graph& graph, DType default_dtype = DType::F32);

}  // namespace cresset::ops
