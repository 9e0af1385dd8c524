// The part of a captured graph which computes one number.
#pragma once

#include <memory>

#include "graph/graph.h"

namespace cresset::bridge {

// Whether the operator may draw random numbers. ops::draws answers for a node, with its probability of dropout.
bool is_random(graph::OpId op);

// Reduces the graph to a single output. The result must not draw random numbers, because a second evaluation would draw
// twice.
std::unique_ptr<graph::Graph> cut_to(const graph::Graph& graph, graph::ValueId value);

}  // namespace cresset::bridge
