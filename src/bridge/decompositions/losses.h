// Losses on symbolic sizes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <optional>

namespace cresset::bridge {

// cross_entropy_loss. ATen's version requires the concrete number of classes where the classes have weights.
at::Tensor cross_entropy(const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight,
                         int64_t reduction, c10::SymInt ignored, double smoothing);

}  // namespace cresset::bridge
