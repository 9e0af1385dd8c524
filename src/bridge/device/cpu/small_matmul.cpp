#include "bridge/device/cpu/small_matmul.h"

#include <algorithm>
#include <cstring>

#include "bridge/device/cpu/multiversion.h"

namespace cresset::bridge {
namespace {

constexpr int64_t kLanes = 16;
using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));
using Bits = int32_t __attribute__((vector_size(kLanes * sizeof(float))));
using Half = float __attribute__((vector_size(kLanes / 2 * sizeof(float))));
using Quarter = float __attribute__((vector_size(kLanes / 4 * sizeof(float))));

// b holds rows of n: a row of `out` is a sum of b's rows.
CRESSET_MULTIVERSION
void row_by_rows(int64_t n, int64_t k, const float* a, const float* b, int64_t b_stride, const float* bias,
                 float* out) {
  for (int64_t begin = 0; begin < n; begin += 4 * kLanes) {
    const int64_t count = std::min(4 * kLanes, n - begin);
    float sum[4 * kLanes];
    for (int64_t j = 0; j < count; ++j) sum[j] = bias == nullptr ? 0 : bias[begin + j];
    if (count == 4 * kLanes) {
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < 4 * kLanes; ++j) sum[j] += a[i] * b[i * b_stride + begin + j];
    } else {
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < count; ++j) sum[j] += a[i] * b[i * b_stride + begin + j];
    }
    for (int64_t j = 0; j < count; ++j) out[begin + j] = sum[j];
  }
}

// b holds columns of k: the elements of `out` are scalar products. The last, partial vector overlaps the previous
// vector. Lanes which are already counted are zeroed in both factors, since they may hold infinities.
CRESSET_MULTIVERSION
void row_by_columns(int64_t n, int64_t k, const float* a, const float* b, int64_t b_stride, const float* bias,
                    float* out) {
  const int64_t whole = k / kLanes * kLanes;
  const bool tail = whole != k && whole != 0;
  Vector tail_of_a = {};
  Bits uncounted = {};
  if (tail)
    for (int64_t i = whole; i < k; ++i) {
      tail_of_a[i - (k - kLanes)] = a[i];
      uncounted[i - (k - kLanes)] = -1;
    }
  for (int64_t j = 0; j < n; ++j) {
    const float* column = b + j * b_stride;
    Vector sum = {}, x, y;
    for (int64_t i = 0; i < whole; i += kLanes) {
      std::memcpy(&x, a + i, sizeof(x));
      std::memcpy(&y, column + i, sizeof(y));
      sum += x * y;
    }
    if (tail) {
      std::memcpy(&y, column + k - kLanes, sizeof(y));
      sum += tail_of_a * reinterpret_cast<Vector>(reinterpret_cast<Bits>(y) & uncounted);
    }
    const Half half = __builtin_shufflevector(sum, sum, 0, 1, 2, 3, 4, 5, 6, 7) +
                      __builtin_shufflevector(sum, sum, 8, 9, 10, 11, 12, 13, 14, 15);
    const Quarter quarter =
        __builtin_shufflevector(half, half, 0, 1, 2, 3) + __builtin_shufflevector(half, half, 4, 5, 6, 7);
    float total = (quarter[0] + quarter[1]) + (quarter[2] + quarter[3]);
    if (whole == 0)
      for (int64_t i = 0; i < k; ++i) total += a[i] * column[i];
    out[j] = total + (bias == nullptr ? 0 : bias[j]);
  }
}

}  // namespace

void small_product(int64_t m, int64_t n, int64_t k, const SmallMatrix& a, const SmallMatrix& b, const float* bias,
                   float* out, int64_t out_stride) {
  const bool rows = b.column_stride == 1 || n == 1;
  for (int64_t i = 0; i < m; ++i) {
    const float* row = a.data + i * a.row_stride;
    if (rows)
      row_by_rows(n, k, row, b.data, b.row_stride, bias, out + i * out_stride);
    else
      row_by_columns(n, k, row, b.data, b.column_stride, bias, out + i * out_stride);
  }
}

}  // namespace cresset::bridge
