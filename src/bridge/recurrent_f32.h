// The steps of a recurrent layer (recurrent_steps.h) for f32: a product and one loop each, without a call of an
// operator.
#pragma once

#include <ATen/core/Tensor.h>

#include "bridge/recurrent_steps.h"

namespace cresset::bridge {

// Tensors but `gates` are contiguous, those that are not there undefined; `out` and `kept` are written.
void run_f32(const at::Tensor& gates, const at::Tensor& state, const at::Tensor& cell, const at::Tensor& weight,
             const at::Tensor& bias, RecurrentKind kind, bool reverse, const at::Tensor& out, const at::Tensor& kept);

// `gates` is written. `cell`: the gradient of the cell's last state, which becomes that of its first. Returns that of
// the state.
at::Tensor run_backward_f32(const at::Tensor& gradient, const at::Tensor& out, const at::Tensor& kept,
                            const at::Tensor& state, const at::Tensor& cell_before, const at::Tensor& weight,
                            RecurrentKind kind, bool reverse, const at::Tensor& gates, const at::Tensor& cell);

}  // namespace cresset::bridge
