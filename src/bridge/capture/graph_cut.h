// The part of a captured graph which computes one number.
#pragma once

#include <memory>

#include "graph/graph.h"

namespace cresset::bridge {

// Whether the operator draws random numbers.
bool is_random(graph::OpId op);

// Whether the node gives another result when it runs again. Attention without dropout draws nothing.
bool draws_again(const graph::Node& node);

// Reduces the graph to a single output. The result must not draw random numbers, because a second evaluation would draw
// twice.
std::unique_ptr<graph::Graph> cut_to(const graph::Graph& graph, graph::ValueId value);

}  // namespace cresset::bridge
