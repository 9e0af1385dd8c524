// Tensors which an operator may be called without.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace cresset::bridge {

inline std::optional<at::Tensor> optional_of(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

inline bool is_given(const std::optional<at::Tensor>& tensor) { return tensor && tensor->defined(); }

}  // namespace cresset::bridge
