// Which nodes of autograd's record hold tensors: a backward pass lets go of them, and no other can pass there.
// And which must not be differentiated again.
#pragma once

#include <torch/csrc/autograd/function.h>

namespace cresset::frontend {

// By what torch's binding of the node's class shows of it; of a custom function, by what it has saved.
bool saves_tensors(torch::autograd::Node& node);

// Whether its backward, or what that wraps, is decorated with torch's once_differentiable.
bool is_differentiated_once(torch::autograd::Node& node);

}  // namespace cresset::frontend
