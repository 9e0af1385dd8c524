#include "bridge/device/cpu/layout_copy.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "bridge/device/cpu/multiversion.h"
#include "bridge/device/cpu/thread_pool.h"

namespace cresset::bridge {
namespace {

constexpr int64_t kTile = 16;             // rows and columns of a tile in registers
constexpr int64_t kStrip = 2 * kTile;     // rows per thread at a time: whole cache lines of the result
constexpr int64_t kWorthThreads = 32768;  // elements

using Lanes32 = uint32_t __attribute__((vector_size(kTile * sizeof(uint32_t))));
using Lanes16 = uint16_t __attribute__((vector_size(kTile * sizeof(uint16_t))));

// A transposed copy: `rows` lines of `columns` elements become `columns` lines of `rows` elements.
template <class T>
struct Matrix {
  const T* from;
  T* to;
  int64_t rows, columns;
};

// Each round interleaves the rows of the upper and the lower half. After as many rounds as a row number has bits, lane
// i of row j is in lane j of row i.
template <class Lanes, class T>
[[gnu::always_inline]] inline void convert_tile(const T* from, int64_t from_line, T* to, int64_t to_line) {
  Lanes lines[kTile], dealt[kTile];
  for (int i = 0; i < kTile; ++i) std::memcpy(&lines[i], from + i * from_line, sizeof(Lanes));
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < kTile / 2; ++i) {
      const Lanes a = lines[i], b = lines[i + kTile / 2];
      dealt[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      dealt[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    for (int i = 0; i < kTile; ++i) lines[i] = dealt[i];
  }
  for (int i = 0; i < kTile; ++i) std::memcpy(to + i * to_line, &lines[i], sizeof(Lanes));
}

template <class T>
[[gnu::always_inline]] inline void convert_elements(const Matrix<T>& m, int64_t row, int64_t rows, int64_t column) {
  for (int64_t c = column; c < m.columns; ++c)
    for (int64_t r = row; r < row + rows; ++r) m.to[c * m.rows + r] = m.from[r * m.columns + c];
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void convert_strip(const Matrix<T>& m, int64_t begin, int64_t end) {
  const int64_t whole_columns = m.columns / kTile * kTile, whole_rows = begin + (end - begin) / kTile * kTile;
  for (int64_t c = 0; c < whole_columns; c += kTile)
    for (int64_t r = begin; r < whole_rows; r += kTile)
      convert_tile<Lanes>(m.from + r * m.columns + c, m.columns, m.to + c * m.rows + r, m.rows);
  convert_elements(m, begin, whole_rows - begin, whole_columns);
  convert_elements(m, whole_rows, end - whole_rows, 0);
}

CRESSET_MULTIVERSION void convert_rows(const Matrix<uint32_t>& m, int64_t begin, int64_t end) {
  convert_strip<Lanes32>(m, begin, end);
}
CRESSET_MULTIVERSION void convert_rows(const Matrix<uint16_t>& m, int64_t begin, int64_t end) {
  convert_strip<Lanes16>(m, begin, end);
}

template <class T>
void convert_batch(const void* from, void* to, int64_t batch, int64_t rows, int64_t columns) {
  const int64_t strips = (rows + kStrip - 1) / kStrip;
  const int64_t grain = std::max<int64_t>(1, kWorthThreads / std::max<int64_t>(1, std::min(rows, kStrip) * columns));
  run_on_ranges(batch * strips, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t offset = i / strips * rows * columns, row = i % strips * kStrip;
      const Matrix<T> m{static_cast<const T*>(from) + offset, static_cast<T*>(to) + offset, rows, columns};
      convert_rows(m, row, std::min(row + kStrip, rows));
    }
  });
}

}  // namespace

at::MemoryFormat channels_last_of(const at::Tensor& image) {
  return image.dim() == 5 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
}

bool convert_layout(const at::Tensor& from, const at::Tensor& to) {
  if (!from.is_cpu() || !to.is_cpu()) return false;
  if ((from.dim() != 4 && from.dim() != 5) || from.sizes() != to.sizes() || from.dtype() != to.dtype()) return false;
  if (from.is_conj() != to.is_conj() || from.is_neg() != to.is_neg()) return false;
  const at::MemoryFormat last = channels_last_of(from);
  const bool away = from.is_contiguous() && to.is_contiguous(last);
  if (!away && !(from.is_contiguous(last) && to.is_contiguous())) return false;
  const int64_t batch = from.size(0), channels = from.size(1), images = std::max<int64_t>(1, batch * channels);
  int64_t rows = channels, columns = from.numel() / images;
  if (!away) std::swap(rows, columns);
  if (from.numel() == 0) return true;
  if (from.element_size() == sizeof(uint32_t))
    convert_batch<uint32_t>(from.const_data_ptr(), to.mutable_data_ptr(), batch, rows, columns);
  else if (from.element_size() == sizeof(uint16_t))
    convert_batch<uint16_t>(from.const_data_ptr(), to.mutable_data_ptr(), batch, rows, columns);
  else
    return false;
  return true;
}

at::Tensor turned(const at::Tensor& image, at::MemoryFormat order) {
  at::Tensor out = at::empty(image.sizes(), image.options().memory_format(order));
  if (!convert_layout(image, out)) out.copy_(image);
  return out;
}

}  // namespace cresset::bridge
