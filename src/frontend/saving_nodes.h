// Which nodes of autograd's record hold tensors: a backward pass lets go of them, and no other can pass there.
#pragma once

#include <torch/csrc/autograd/function.h>

namespace cresset::frontend {

// By what torch's binding of the node's class shows of it; of a custom function, by what it has saved.
bool saves_tensors(torch::autograd::Node& node);

}  // namespace cresset::frontend
