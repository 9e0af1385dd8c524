// Norms of matrices, done on symbolic sizes.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace cresset::bridge {

// linalg_matrix_norm by a number: ATen's asks for the size that it takes the greatest along.
at::Tensor matrix_norm(const at::Tensor& self, const at::Scalar& order, at::IntArrayRef dims, bool keep,
                       std::optional<at::ScalarType> dtype);

}  // namespace cresset::bridge
