// torch's recurrent layers (lstm, gru, rnn_tanh, rnn_relu) are composite: a loop over the steps, unrolled by capture.
// Where neither gradients nor random numbers are wanted they are kept whole, one operator of the graph for any length
// (ops/recurrent.cpp); it runs ATen's own loop. Otherwise they are made of layers (recurrent_gradients.h), for any
// length as well. What is left is unrolled: packed sequences, projections, autocast, tangents.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace cresset::bridge {

bool is_recurrent_layer(const c10::OperatorName& name);
// Whether this call is; and what else is done with it.
bool is_kept_whole(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
void run_in_steps(const c10::OperatorHandle& op, torch::jit::Stack& stack);

// The kernels above autograd, for install_symbolic_composites().
void add_recurrent_layers(torch::Library& above_autograd);

}  // namespace cresset::bridge
