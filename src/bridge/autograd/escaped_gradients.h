// The autograd graph of a captured computation which outlives its capture.
//
// Its nodes keep symbolic sizes, which most kernels refuse. While such a node runs after the capture, operators
// therefore pass through the capture kernels once more (run_beside_capture). These kernels replace symbols by plain
// numbers.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <vector>

namespace cresset::bridge {

// Whether the node belongs to compiled code, which holds nothing symbolic.
bool is_compiled(const torch::autograd::Node& node);

// Called after these trace tensors have become real. Prepares the nodes behind them which this thread made with a
// sequence number (at::sequence_number) of at least `since`.
void settle_gradients(const std::vector<at::Tensor>& tensors, uint64_t since = 0);

}  // namespace cresset::bridge
