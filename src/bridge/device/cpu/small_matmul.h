// Matrix products which are too small for a library: the call would cost more than the computation.
#pragma once

#include <cstdint>

namespace cresset::bridge {

struct SmallMatrix {
  const float* data;
  int64_t row_stride, column_stride;  // in elements
};

constexpr int64_t kSmallProduct = 16 * 1024;  // multiply-adds

// out[m, n] (rows out_stride apart, dense columns) = bias (n values, or null) + a[m, k] @ b[k, n]. The columns of `a`
// must be dense. In `b` either the rows or the columns must be dense.
void small_product(int64_t m, int64_t n, int64_t k, const SmallMatrix& a, const SmallMatrix& b, const float* bias,
                   float* out, int64_t out_stride);

}  // namespace cresset::bridge
