// Composite operators whose code in ATen broadcasts symbolic sizes.
//
// ATen's code tests a size for 1 with `guard_or_false`, which answers for a general size (sym_node.h). Here the two
// answers lead to different results, so the question is decided with a guard.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace cresset::bridge {

at::Tensor cosine_similarity(const at::Tensor& a, const at::Tensor& b, int64_t dim, double eps);
at::Tensor einsum(std::string_view equation, at::TensorList operands, at::OptionalIntArrayRef path);

}  // namespace cresset::bridge
