// Whether a torch operator accepts given dtypes on the CPU. Meta kernels and shape rules do not know this. Only the
// kernels know: `gelu` is not implemented for integers, and a matrix product requires a single dtype.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace cresset::bridge {

struct DtypeTrial {
  bool refused = false;
  std::vector<std::optional<DType>> made;  // dtypes of ATen's results; meta kernels may disagree
};

// Tries the operator on zeros, once per process for each operator and dtypes. Skips the trial and assumes success for
// plain floats in operators on numbers of any kind, and for large tensors. Operators must run for real
// (Capture::StepAside).
DtypeTrial try_dtypes(const graph::Graph& graph, const std::vector<at::Tensor>& constants, graph::OpId op,
                      const std::vector<graph::Arg>& args);

// Whether the numbers among the arguments fit into the dtypes to which kernels convert them; eager mode raises for some
// misfits. Answers about symbols are guarded.
bool numbers_fit(const graph::Graph& graph, graph::OpId op, const std::vector<graph::Arg>& args,
                 const std::vector<graph::TensorType>& types);

}  // namespace cresset::bridge
