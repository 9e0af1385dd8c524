// What a user has put in the place of methods of torch.Tensor and Parameter: programs are captured under it, as under
// torch's modes.
#pragma once

#include <cstdint>

namespace cresset::frontend {

// 0 as long as the classes are as torch has made them; else a number for all methods that are other ones.
uintptr_t tensor_class_state();
// Whether operators are among them, whose code is Python then: x + 1.
bool tensor_operators_replaced();

}  // namespace cresset::frontend
