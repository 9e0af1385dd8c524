// Values which a program computes from its weights alone are equal at every call while the weights are unchanged. Where
// this can be assumed (driver::Options::freeze), a separate program computes them once. `fixed` says, by position,
// which of Graph::constants keep their contents.
#pragma once

#include <memory>
#include <vector>

#include "base/compile_options.h"
#include "graph/graph.h"

namespace cresset::passes {

// Folds unchanging factors and summands of a product's columns, or of a convolution's channels, into its weight and
// bias: batch norm in inference, layer scale, a bias added separately. Expects a graph of primitives.
bool scale_weights(graph::Graph& graph, const std::vector<bool>& fixed);

// Moves unchanging values worth keeping to a new graph with the same constants. Its outputs become, in order,
// additional constants at the end of `graph`'s constants. Returns nullptr when no value qualifies.
std::unique_ptr<graph::Graph> split_unchanging(graph::Graph& graph, const std::vector<bool>& fixed);

// The whole pass, on a captured graph.
std::unique_ptr<graph::Graph> freeze(graph::Graph& graph, const std::vector<bool>& fixed,
                                     const driver::Options& options);

}  // namespace cresset::passes
