// Autograd's record of a computation that was captured, where it outlives the capture.
//
// Its nodes keep symbolic sizes, which most kernels refuse. So while such a node runs after the capture, operators pass
// by the capture kernels once more (run_beside_capture), which put plain numbers in their place.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <vector>

namespace cresset::bridge {

// A node of compiled code, which holds nothing symbolic.
bool is_compiled(const torch::autograd::Node& node);

// These tensors of a capture have become real: sees to the nodes that they were computed by, as far as this thread made
// them from the node of that number on (at::sequence_number).
void settle_gradients(const std::vector<at::Tensor>& tensors, uint64_t since = 0);

}  // namespace cresset::bridge
