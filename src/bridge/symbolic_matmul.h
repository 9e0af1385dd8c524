// torch.matmul on symbolic sizes.
#pragma once

#include <ATen/core/Tensor.h>

namespace cresset::bridge {

// (..., n, m) and (..., m, p) of any ranks from 1 on, as ATen does it: by dot, mv, mm or bmm, whose operands and results
// are the same. Its own code looks at plain sizes of the batch dimensions in some versions of torch.
at::Tensor symbolic_matmul(const at::Tensor& left, const at::Tensor& right);

}  // namespace cresset::bridge
