// What a program computes from its weights alone is the same at every call, as long as they are. Where that may be
// taken for granted (driver::Options::freeze), it is computed by a program of its own, once. `fixed` says which of
// Graph::constants keep their contents, by position.
#pragma once

#include <memory>
#include <vector>

#include "base/compile_options.h"
#include "graph/graph.h"

namespace cresset::passes {

// Unchanging factors and summands of the columns of a product, or of a convolution's channels, become part of its
// weight and bias: batch norm in inference, layer scale, a bias that is added apart. A graph of primitives.
bool scale_weights(graph::Graph& graph, const std::vector<bool>& fixed);

// Takes what is unchanging and worth keeping out of the graph. A graph of the same constants, whose outputs are, in
// order, constants of `graph` behind those that it had. nullptr: there is nothing.
std::unique_ptr<graph::Graph> split_unchanging(graph::Graph& graph, const std::vector<bool>& fixed);

// All of it, on a graph as it is captured.
std::unique_ptr<graph::Graph> freeze(graph::Graph& graph, const std::vector<bool>& fixed,
                                     const driver::Options& options);

}  // namespace cresset::passes
