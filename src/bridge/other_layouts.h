// Sparse, quantized and nested tensors while something is captured: beside the capture key they dispatch to keys of
// their own (SparsePrivateUse3 and its kin), which torch has no kernels for. Those here end the piece.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <deque>

namespace cresset::bridge {

// For all operators that have no kernel for such tensors but those of backends.
void install_other_layouts();

// For one that also has a kernel for tensors of any kind, which would be taken for strided ones.
void register_other_layouts(const c10::OperatorHandle& handle, std::deque<c10::RegistrationHandleRAII>& registrations);

}  // namespace cresset::bridge
