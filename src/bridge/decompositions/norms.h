// Norms of matrices with symbolic sizes.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace cresset::bridge {

// linalg_matrix_norm with a numeric order. ATen's version requires the concrete size along which it takes the maximum.
at::Tensor matrix_norm(const at::Tensor& self, const at::Scalar& order, at::IntArrayRef dims, bool keep,
                       std::optional<at::ScalarType> dtype);

}  // namespace cresset::bridge
