// Views as memory: the layout of a view operator's result, given the layout of its argument.
#pragma once

#include "fuse/layout.h"
#include "ops/op_def.h"

namespace cresset::fuse {

// Returns the layout of result `result` of the view node `node` over memory with layout `base`. Returns nullopt when
// the result is not provably a strided tensor (a reshape across a gap). Every view rule is supported: its index map is
// evaluated on fresh index variables, and the address is read off as an affine function. Reshapes have a separate
// algorithm, since their map consists of quotients and remainders.
std::optional<Layout> strided_view(const Graph& graph, graph::NodeId node, size_t result, const Layout& base);

// Returns the index in argument 0 of the element `index` of a view node's result, simplified.
Index view_index(ops::ElementContext& context, const Graph& graph, const graph::Node& node, size_t result,
                 const Index& index);

// Whether the elements of argument and result are in bijection in the same row-major order.
bool is_reshape(graph::OpId op);

}  // namespace cresset::fuse
