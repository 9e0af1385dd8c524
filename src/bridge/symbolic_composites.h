// Composite operators whose own code looks at plain sizes, done again on symbolic ones.
#pragma once

#include <c10/core/SymIntArrayRef.h>

#include <vector>

namespace cresset::bridge {

// Registers them for trace tensors, above and below autograd. Once, before the first capture.
void install_symbolic_composites();

// The shape that two shapes broadcast to. Throws where they do not.
std::vector<c10::SymInt> broadcast_sizes(c10::SymIntArrayRef a, c10::SymIntArrayRef b);

}  // namespace cresset::bridge
