// Operators with a symbolic float in the place of a number: a form with a tensor argument takes over, so the number
// need not be known.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <optional>
#include <string>

namespace cresset::bridge {

// Computes the operator on the last `count` values of the stack. For an in-place operator, returns the value to be
// written. nullopt: the number must be known.
std::optional<at::Tensor> with_float_tensors(const std::string& name, const torch::jit::Stack& stack, size_t count);

// A tensor of these sizes filled with the number of a 0-dim tensor, as by torch.full.
at::Tensor repeated_to(const at::Tensor& number, const c10::IValue& sizes);
// The functional counterpart of an in-place operator's name: aten::add.Tensor for aten::add_.Tensor.
std::string functional_name(std::string name);

}  // namespace cresset::bridge
