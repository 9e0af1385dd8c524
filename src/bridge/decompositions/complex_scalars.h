// Operators with a complex number in the place of a real one. Graphs hold no complex numbers, so a form of the operator
// with a tensor argument takes over, as in Python's own arithmetic (x * 2j).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <optional>
#include <string>

namespace cresset::bridge {

// Computes the operator on the last `count` values of the stack. For an in-place operator, returns the value to be
// written. nullopt: the operator has no form of this kind.
std::optional<at::Tensor> with_complex_tensors(const std::string& name, const torch::jit::Stack& stack, size_t count);

}  // namespace cresset::bridge
