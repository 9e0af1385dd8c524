// torch's recurrent layers (lstm, gru, rnn_tanh, rnn_relu) are composite: a loop over the steps, which capture unrolls.
// Without gradients and random numbers a layer stays whole: a single graph operator for any length (ops/recurrent.cpp),
// which runs ATen's own loop. Otherwise it consists of layers (recurrent_gradients.h), also for any length. Packed
// sequences, projections, autocast and tangents are unrolled.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace cresset::bridge {

bool is_recurrent_layer(const c10::OperatorName& name);
// is_kept_whole(): whether this call stays whole. run_in_steps(): runs the call as unrolled steps.
bool is_kept_whole(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
void run_in_steps(const c10::OperatorHandle& op, torch::jit::Stack& stack);

// Registers the kernels above autograd, for install_symbolic_composites().
void add_recurrent_layers(torch::Library& above_autograd);

}  // namespace cresset::bridge
