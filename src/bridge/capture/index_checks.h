// Operators which nobody uses, and which raise for indices out of range. A check of the indices stands in their place:
// later calls raise as eager mode does, and the operators' results are not computed.
#pragma once

#include <vector>

#include "bridge/capture/captured.h"
#include "bridge/capture/data_dependent_errors.h"

namespace cresset::bridge {

struct UnusedCall {
  size_t position;  // in Graph::order
  std::vector<IndexBound> bounds;
};

// Whether the indices are a column of nonzero(mask), for a mask as large as the indexed dimension: x[mask] raises for
// no data.
bool is_column_of_mask(graph::Graph& graph, const std::vector<DataDependentCall>& calls, const IndexBound& bound);

// Adds the checks behind the operators, which must be in order.
void check_indices(graph::Graph& graph, std::vector<at::Tensor>& constants, std::vector<DataDependentCall>& calls,
                   const std::vector<UnusedCall>& unused);

}  // namespace cresset::bridge
