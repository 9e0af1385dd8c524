// Attention masks which keep everything, on GPUs. Libraries make such masks while they compile, because a mask is then
// not read: a comparison of positions with 0, expanded to all batches and queries.
#pragma once

#include <ATen/core/Tensor.h>

namespace cresset::bridge {

// Whether attention gives the same result without the mask: all elements are known to be true, and the mask has a form
// with which fused kernels work, too. If sizes decide about the elements, the answer is guarded.
bool is_idle_mask(const at::Tensor& mask, const at::Tensor& query, const at::Tensor& key);

}  // namespace cresset::bridge
