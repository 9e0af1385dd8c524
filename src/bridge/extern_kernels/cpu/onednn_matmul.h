// libtorch_cpu exports this function without a public header. The symbol is weak: a torch without it uses ATen's
// default.
#pragma once

#include <ATen/core/Tensor.h>

namespace at::native {
__attribute__((weak)) void mkldnn_matmul(const at::Tensor& mat1, const at::Tensor& mat2, const at::Tensor& result,
                                         float beta, float alpha);
}  // namespace at::native
