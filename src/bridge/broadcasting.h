// Composite operators whose code in ATen broadcasts symbolic sizes.
//
// It asks whether a size is 1 with `guard_or_false`, whose answer is that of a general size (sym_node.h). Here both
// answers are not right: it is decided.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace cresset::bridge {

at::Tensor cosine_similarity(const at::Tensor& a, const at::Tensor& b, int64_t dim, double eps);
at::Tensor einsum(std::string_view equation, at::TensorList operands, at::OptionalIntArrayRef path);

}  // namespace cresset::bridge
