// Kinds of attention masks that need no mask, on GPUs. Libraries make such masks while they compile, because a mask is
// then not read: comparisons of positions, expanded to all batches and heads.
#pragma once

#include <ATen/core/Tensor.h>

namespace cresset::bridge {

enum class MaskKind : uint8_t {
  Other,
  KeepsAll,  // all elements are known to be true
  Causal,    // a query keeps the keys up to its own position; there are as many queries as keys
};

// Of a mask with a form with which fused kernels work. If sizes decide about the elements, the answer is guarded.
MaskKind kind_of_mask(const at::Tensor& mask, const at::Tensor& query, const at::Tensor& key);

}  // namespace cresset::bridge
