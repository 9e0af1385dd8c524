// Floats from a caller or from data (SymNode::Type::Value), on their way between Python and operators.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymNodeImpl.h>

namespace cresset::bridge {

class Capture;

// The result of item() on a tensor with a single float: a Value. Null where this is impossible. only_given: also null
// where the number is no input scalar (input_scalars.h).
c10::SymNode float_in(Capture& capture, const at::Tensor& tensor, bool only_given);

// torch wraps SymFloats of other languages. The language's binding supplies the function which unwraps them.
void set_unwrapper(c10::SymNode (*unwrap)(const c10::SymNode&));
c10::SymNode unwrapped(const c10::SymNode& node);

}  // namespace cresset::bridge
