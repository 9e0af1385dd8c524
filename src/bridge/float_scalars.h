// Operators whose schema has a number where a symbolic float is given: done by forms of them that take a tensor, so
// that the number need not be known.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <optional>
#include <string>

namespace cresset::bridge {

// The result of the operator with the last `count` values of the stack; of an in-place one, what is to be written.
// nullopt: the number is asked for.
std::optional<at::Tensor> with_float_tensors(const std::string& name, const torch::jit::Stack& stack, size_t count);

// A tensor of these sizes that holds a 0-dim one's number everywhere, as torch.full makes it.
at::Tensor repeated_to(const at::Tensor& number, const c10::IValue& sizes);
// Of an in-place operator the one whose result it writes: aten::add.Tensor for aten::add_.Tensor.
std::string functional_name(std::string name);

}  // namespace cresset::bridge
