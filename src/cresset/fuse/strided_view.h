// Views as memory: what a view operator's result looks like when its argument lies in memory in a given layout.
#pragma once

#include "fuse/layout.h"
#include "ops/op_def.h"

namespace cresset::fuse {

// The layout of result `result` of the view node `node` over memory laid out as `base`; nullopt when it is no strided
// tensor, provably (a reshape across a seam). Works on any view rule: the rule's index map is probed with fresh index
// variables and the address is read off as an affine function; reshapes have an algorithm of their own, since theirs
// is a quotient and remainder map.
std::optional<Layout> strided_view(const Graph& graph, graph::NodeId node, size_t result, const Layout& base);

// Where in argument 0 the element `index` of a view node's result lies, simplified.
Index view_index(ops::ElementContext& context, const Graph& graph, const graph::Node& node, size_t result,
                 const Index& index);

// Whether every element of the argument is exactly one element of the result, in the same row-major order.
bool is_reshape(graph::OpId op);

}  // namespace cresset::fuse
