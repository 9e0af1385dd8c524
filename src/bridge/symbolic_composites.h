// Composite operators whose own code looks at plain sizes, done again on symbolic ones.
#pragma once

namespace cresset::bridge {

// Registers them for trace tensors, above and below autograd. Once, before the first capture.
void install_symbolic_composites();

}  // namespace cresset::bridge
