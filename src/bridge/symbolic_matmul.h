// Products of tensors with symbolic sizes.
#pragma once

#include <ATen/core/Tensor.h>

namespace cresset::bridge {

// (..., n, m) and (..., m, p) of any ranks from 1 on, as ATen does it: by dot, mv, mm or bmm, whose operands and
// results are the same. Its own code looks at plain sizes of the batch dimensions in some versions of torch.
at::Tensor symbolic_matmul(const at::Tensor& left, const at::Tensor& right);
// torch.tensordot over as many dimensions of both, as one mm. ATen's own code asks of each size whether it is 1.
at::Tensor symbolic_tensordot(const at::Tensor& left, const at::Tensor& right, at::IntArrayRef left_dims,
                              at::IntArrayRef right_dims);

}  // namespace cresset::bridge
