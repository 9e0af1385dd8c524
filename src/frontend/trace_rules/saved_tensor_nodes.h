// Which nodes of the autograd graph save tensors: a backward pass releases the tensors, and a second pass fails there.
// Also which nodes do not support double backward.
#pragma once

#include <torch/csrc/autograd/function.h>

namespace cresset::frontend {

// Reads torch's binding of the node's class, or the saved tensors of a custom function.
bool saves_tensors(torch::autograd::Node& node);

// Whether the node's backward, or a function wrapped by it, is decorated with torch's once_differentiable.
bool is_differentiated_once(torch::autograd::Node& node);

}  // namespace cresset::frontend
