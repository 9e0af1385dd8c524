// Sparse, quantized and nested tensors during a capture. Beside the capture key they dispatch to keys of their own
// (SparsePrivateUse3 and its kin), for which torch has no kernels. The kernels here end the graph segment.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <deque>

namespace cresset::bridge {

// Covers all operators which have only backend kernels for these tensors.
void install_other_layouts();

// Covers an operator which also has a kernel for tensors of any kind; this kernel would treat them as strided.
void register_other_layouts(const c10::OperatorHandle& handle, std::deque<c10::RegistrationHandleRAII>& registrations);

}  // namespace cresset::bridge
