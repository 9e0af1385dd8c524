// Attention on a GPU. ATen's composite asks the device for the best kernel, on the sizes of the call. Here the choice
// does not depend on sizes: without gradients attention is one operator, which chooses at each call; with gradients the
// kernel follows from dtypes and masks, and the sizes that are not numbers only decide whether it can be used at all.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace cresset::bridge {

struct Attention {
  at::Tensor query, key, value;
  std::optional<at::Tensor> mask;  // of booleans, or added to the scores
  double dropout = 0;
  bool causal = false;
  std::optional<double> scale;
  bool grouped = false;  // fewer heads of keys and values than of queries
};

// nullopt: the arguments are invalid, ATen's composite raises.
std::optional<at::Tensor> gpu_attention(const Attention& a);

// The mask in the form that is added to the scores: of a mask of booleans, 0 and minus infinity.
at::Tensor added_to_scores(const at::Tensor& mask, const at::Tensor& query);

// Registers the operators. Called once, before the first capture.
void register_gpu_attention();

}  // namespace cresset::bridge
