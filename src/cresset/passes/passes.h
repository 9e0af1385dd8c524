// The graph passes, a file for each. Each rewrites the graph in place and returns whether it changed anything.
#pragma once

#include "base/compile_options.h"
#include "graph/graph.h"

namespace cresset::passes {

bool decompose(graph::Graph& graph);  // Composite operators into primitives, to a fixed point
bool dead_code(graph::Graph& graph);  // nodes with unused results (random and assertion nodes stay)
bool common_subexpressions(graph::Graph& graph);
bool fold_constants(graph::Graph& graph);     // values known at compile time: full, arange of constants, ...
bool remove_no_ops(graph::Graph& graph);      // x*1, x+0, views and casts without effect, permute chains
bool extern_epilogue(graph::Graph& graph);    // activations into the products and convolutions before them
bool grouped_attention(graph::Graph& graph);  // keys and values that were repeated for queries, read where they lie
bool channels_last(graph::Graph& graph);      // strides of image networks inside the graph
// The same for a joint graph on devices with DeviceTraits::channels_last_gradients, before it is split. `backward`: the
// nodes after the forward graph's. `kept`: the values, beside the graph's results, which keep their strides.
bool channels_last_joint(graph::Graph& forward, std::vector<graph::NodeId>& backward,
                         const std::vector<graph::ValueId>& kept);

// The pipeline, in order. With CRESSET_VERIFY=1 the graph is verified between passes. clean() is the part before the
// passes for libraries; it may run repeatedly.
void clean(graph::Graph& graph, const driver::Options& options);
void run(graph::Graph& graph, const driver::Options& options);

}  // namespace cresset::passes
