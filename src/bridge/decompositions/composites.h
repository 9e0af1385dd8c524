// Composite operators whose own code needs plain sizes, implemented again for symbolic sizes.
#pragma once

#include <c10/core/SymIntArrayRef.h>

#include <vector>

namespace cresset::bridge {

// Registers the operators for trace tensors, above and below autograd. Called once, before the first capture.
void install_symbolic_composites();

// The shape to which two shapes broadcast. Throws where they do not broadcast.
std::vector<c10::SymInt> broadcast_sizes(c10::SymIntArrayRef a, c10::SymIntArrayRef b);

}  // namespace cresset::bridge
