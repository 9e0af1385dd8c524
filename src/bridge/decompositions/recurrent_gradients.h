// Recurrent layers which require gradients, or have dropout between layers. They consist of the steps of a layer in a
// direction (recurrent_steps.h) and of plain operators, for any length.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include "bridge/decompositions/recurrent_steps.h"

namespace cresset::bridge {

struct RecurrentLayers {
  RecurrentKind kind = RecurrentKind::Lstm;
  at::Tensor input;
  std::vector<at::Tensor> states, parameters;  // states: of the layers' outputs, and of lstm's cells
  bool has_biases = false, both_ways = false, batch_first = false;
  int64_t layers = 1;
  double dropout = 0;  // between layers

  int64_t directions() const { return both_ways ? 2 : 1; }
  size_t parameters_of_one() const { return has_biases ? 4 : 2; }
};

// The steps as operators known to autograd, for derivatives of any order. The second result holds only the cell's
// states.
std::tuple<at::Tensor, at::Tensor> recorded_steps(const at::Tensor& gates, const at::Tensor& state,
                                                  const std::optional<at::Tensor>& cell, const at::Tensor& weight,
                                                  const std::optional<at::Tensor>& bias, RecurrentKind kind,
                                                  bool reverse);

// Whether the network is supported; ATen reports errors of an unsupported network.
bool has_known_form(const RecurrentLayers& network);
// Returns the output, then the last states.
std::vector<at::Tensor> run_layers(const RecurrentLayers& network);

}  // namespace cresset::bridge
