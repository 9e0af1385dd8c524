// A layer of a recurrent network in a single direction, as two operators: its steps and their derivative. Each is a
// loop inside of a call, so the graph, with gradients, does not depend on the length.
//
//   steps(gates, state, cell, weight, bias, kind, reverse) -> (out, kept)
//   steps_backward(gradient, cell_gradient, out, kept, state, cell, weight, kind, reverse)
//       -> (gate gradients, state gradient, cell gradient)
//
// gates: [length, batch, G * features], the input's part in each step, including its bias.
// state, cell: [batch, features]; weight: [G * features, features]; bias: [G * features].
// kept: [length, batch, K * features], the values of each step which the derivative needs.
// G and K are 4 and 5 for lstm (input, forget, cell, output; the cell's new state). They are 3 and 4 for gru (reset,
// update, new; the state's part in the new gate), and 1 and 0 for the plain kinds. An absent gradient is zero.
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
