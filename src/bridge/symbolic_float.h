// Floats that a caller or data gives (SymNode::Type::Value), on their way between Python and operators.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymNodeImpl.h>

namespace cresset::bridge {

class Capture;

// What item() gives of a tensor of one float: a Value. Null where it cannot be one. only_given: and where it is not
// known when the call begins (given_number.h).
c10::SymNode float_in(Capture& capture, const at::Tensor& tensor, bool only_given);

// torch hands SymFloats of other languages over in a wrapping, which whoever knows the language takes off.
void set_unwrapper(c10::SymNode (*unwrap)(const c10::SymNode&));
c10::SymNode unwrapped(const c10::SymNode& node);

}  // namespace cresset::bridge
