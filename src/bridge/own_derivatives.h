// Derivatives for trace tensors where autograd's own formula reads data or asks for sizes as numbers: ours are made of
// operators, which hold for any data and any sizes.
#pragma once

namespace cresset::bridge {

// Registers them above autograd. Once, before the first capture.
void install_own_derivatives();

}  // namespace cresset::bridge
