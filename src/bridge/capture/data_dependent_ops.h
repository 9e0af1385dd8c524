// Operators whose result sizes depend on data, and reads of single elements: the shapes of their results in a graph,
// and their calls at run time.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>
#include <vector>

#include "bridge/aten/op_schema.h"
#include "bridge/capture/captured.h"

namespace cresset::bridge {

// Whether the operator has data-dependent result sizes which stages support.
bool makes_data_dependent_sizes(graph::OpId op);
// Types of the operator's results, with fresh unbacked symbols. `fresh` receives (result, dimension) for each symbol.
// Aborts the capture for an unsupported kind of argument.
std::vector<graph::TensorType> data_dependent_types(graph::Graph& graph, graph::OpId op,
                                                    const std::vector<graph::Arg>& args,
                                                    std::vector<std::pair<uint32_t, uint32_t>>& fresh);

// Whether the call reads the elements of its argument, which then are its `made` inputs.
bool reads_elements(const DataDependentCall& call);
int64_t element(const at::Tensor& tensor, uint32_t which);

// Calls the operator with arguments from `tensor` and `integer`. The results have the layouts promised by their types.
std::vector<at::Tensor> call_data_dependent(const c10::OperatorHandle& op, const std::vector<graph::Arg>& args,
                                            const std::function<at::Tensor(graph::ValueId)>& tensor,
                                            const std::function<int64_t(sym::ExprId)>& integer);

}  // namespace cresset::bridge
