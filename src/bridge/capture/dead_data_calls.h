// Removal of calls with data-dependent sizes whose results and sizes are not used.
#pragma once

#include <vector>

#include "bridge/capture/captured.h"

namespace cresset::bridge {

// Removes calls without users: no value, size or number of theirs is needed, and `kept` mentions none. Nodes which only
// fed these calls go too.
void drop_unused_calls(graph::Graph& graph, std::vector<DataDependentCall>& calls,
                       const std::vector<SymbolBinding>& symbols, size_t real_inputs, std::vector<sym::ExprId> kept);

// The same for a subgraph: removes nodes and calls which its outputs and `kept` do not need.
void drop_unused(graph::Graph& graph, Subgraph& part, const std::vector<SymbolBinding>& symbols,
                 const std::vector<sym::ExprId>& kept);

}  // namespace cresset::bridge
