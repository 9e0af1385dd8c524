// One direction of a layer of a recurrent network as two operators, its steps and their derivative, each a loop inside
// of a call: what is made of them, with gradients, does not depend on the length.
//
//   steps(gates, state, cell, weight, bias, kind, reverse) -> (out, kept)
//   steps_backward(gradient, cell_gradient, out, kept, state, cell, weight, kind, reverse)
//       -> (gate gradients, state gradient, cell gradient)
//
// gates: [length, batch, G * features], what the input gives to each step, its bias included. state, cell: [batch,
// features]; weight: [G * features, features]; bias: [G * features]. kept: [length, batch, K * features], what the
// derivative needs of each step. G and K are 4 and 5 for lstm (input, forget, cell, output; the cell's new state), 3
// and 4 for gru (reset, update, new; what the state gives to the new one), 1 and 0 for the plain ones. A gradient that
// is not there is zero.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>

#include "ops/recurrent.h"

namespace cresset::bridge {

using ops::RecurrentKind;

void register_recurrent_steps();

std::tuple<at::Tensor, at::Tensor> recurrent_steps(const at::Tensor& gates, const at::Tensor& state,
                                                   const std::optional<at::Tensor>& cell, const at::Tensor& weight,
                                                   const std::optional<at::Tensor>& bias, RecurrentKind kind,
                                                   bool reverse);
std::tuple<at::Tensor, at::Tensor, at::Tensor> recurrent_steps_backward(
    const at::Tensor& gradient, const std::optional<at::Tensor>& cell_gradient, const at::Tensor& out,
    const at::Tensor& kept, const at::Tensor& state, const std::optional<at::Tensor>& cell, const at::Tensor& weight,
    RecurrentKind kind, bool reverse);

}  // namespace cresset::bridge
