// Whether an operator of torch's takes tensors of these dtypes on the CPU. Meta kernels and shape rules do not say:
// that `gelu` is not implemented for integers, or that a product of matrices wants one dtype, is known to the kernels
// alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace cresset::bridge {

struct DtypeTrial {
  bool refused = false;
  std::vector<std::optional<DType>> made;  // of the results, as ATen makes them: meta kernels may say otherwise
};

// Tries it on zeros, once a process for an operator and dtypes. Not asked, and taken to do, where plain floats are
// given to what is for numbers of any kind, and where tensors are large. Operators must run for real
// (Capture::StepAside).
DtypeTrial try_dtypes(const graph::Graph& graph, const std::vector<at::Tensor>& constants, graph::OpId op,
                      const std::vector<graph::Arg>& args);

// Whether the numbers among the arguments fit into the dtypes at hand, into which kernels convert them: eager raises
// for some that do not. Guards what it finds of symbols.
bool numbers_fit(const graph::Graph& graph, graph::OpId op, const std::vector<graph::Arg>& args,
                 const std::vector<graph::TensorType>& types);

}  // namespace cresset::bridge
