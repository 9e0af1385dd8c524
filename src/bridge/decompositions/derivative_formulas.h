// Derivative formulas for trace tensors, where autograd's own formula reads data or requires concrete sizes. These
// formulas consist of operators and hold for any data and any sizes.
#pragma once

namespace cresset::bridge {

// Registers the formulas above autograd. Called once, before the first capture.
void install_derivative_formulas();

}  // namespace cresset::bridge
