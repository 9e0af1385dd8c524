// The graph passes, one a file. Each rewrites the graph in place and returns whether it changed anything.
#pragma once

#include "base/compile_options.h"
#include "graph/graph.h"

namespace cresset::passes {

bool decompose(graph::Graph& graph);  // Composite operators into primitives, to a fixed point
bool dead_code(graph::Graph& graph);  // nodes whose results nobody uses (random and assertion nodes stay)
bool common_subexpressions(graph::Graph& graph);
bool fold_constants(graph::Graph& graph);   // values known at compile time: full, arange of constants, ...
bool remove_no_ops(graph::Graph& graph);    // x*1, x+0, views and casts that change nothing, permute chains
bool extern_epilogue(graph::Graph& graph);  // activations into the products and convolutions before them
bool channels_last(graph::Graph& graph);    // strides of image networks inside the graph

// The pipeline, in order. Verifies between passes under CRESSET_VERIFY=1. clean: its part up to what is left to
// libraries, which may be done again.
void clean(graph::Graph& graph, const driver::Options& options);
void run(graph::Graph& graph, const driver::Options& options);

}  // namespace cresset::passes
