// Products of tensors with symbolic sizes.
#pragma once

#include <ATen/core/Tensor.h>

namespace cresset::bridge {

// (..., n, m) and (..., m, p) of any ranks from 1 on, as in ATen: by dot, mv, mm or bmm with the same operands and
// results. ATen's own code requires plain batch sizes in some versions of torch.
at::Tensor symbolic_matmul(const at::Tensor& left, const at::Tensor& right);
// torch.tensordot over equally many dimensions of both operands, as a single mm. ATen's own code tests each size for 1.
at::Tensor symbolic_tensordot(const at::Tensor& left, const at::Tensor& right, at::IntArrayRef left_dims,
                              at::IntArrayRef right_dims);

}  // namespace cresset::bridge
