// The steps of a recurrent layer (recurrent_steps.h) for f32. Each step is a matrix product and a loop, without
// operator calls.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/recurrent.h"

namespace cresset::bridge {

using ops::RecurrentKind;

// Tensors except `gates` are contiguous, absent tensors are undefined; `out` and `kept` are written.
void run_f32(const at::Tensor& gates, const at::Tensor& state, const at::Tensor& cell, const at::Tensor& weight,
             const at::Tensor& bias, RecurrentKind kind, bool reverse, const at::Tensor& out, const at::Tensor& kept);

// `gates` is written. `cell`: the gradient of the cell's last state, replaced by the gradient of its first state.
// Returns the gradient of the first state.
at::Tensor run_backward_f32(const at::Tensor& gradient, const at::Tensor& out, const at::Tensor& kept,
                            const at::Tensor& state, const at::Tensor& cell_before, const at::Tensor& weight,
                            RecurrentKind kind, bool reverse, const at::Tensor& gates, const at::Tensor& cell);

}  // namespace cresset::bridge
