// User replacements of methods of torch.Tensor and Parameter. The set of replacements is guarded, like torch's modes.
#pragma once

#include <cstdint>

namespace cresset::frontend {

// 0 for unmodified classes; else a number which identifies all replaced methods.
uintptr_t tensor_class_state();
// Whether an operator is replaced, so that x + 1 runs Python code.
bool tensor_operators_replaced();

}  // namespace cresset::frontend
