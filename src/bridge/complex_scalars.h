// Operators whose schema has a number where a complex one is given: graphs hold no complex numbers, so they are done by
// forms of them that take a tensor, as Python's own arithmetic does (x * 2j).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <optional>
#include <string>

namespace cresset::bridge {

// The result of the operator with the last `count` values of the stack; of an in-place one, what is to be written.
// nullopt: there is no such form of it.
std::optional<at::Tensor> with_complex_tensors(const std::string& name, const torch::jit::Stack& stack, size_t count);

}  // namespace cresset::bridge
