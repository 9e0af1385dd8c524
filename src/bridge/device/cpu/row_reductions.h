// Row reductions: combines a row of elements with another row, for operators which write at indexed positions.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <limits>

namespace cresset::bridge {

enum class RowReduction : uint8_t { Copy, Add, Multiply, Greatest, Least };

// NaN counts as greatest and as least.
template <RowReduction fold, class T>
inline T folded(T there, T next) {
  if constexpr (fold == RowReduction::Copy) return next;
  if constexpr (fold == RowReduction::Add) return there + next;
  if constexpr (fold == RowReduction::Multiply) return there * next;
  if constexpr (fold == RowReduction::Greatest) return next != next || there < next ? next : there;
  if constexpr (fold == RowReduction::Least) return next != next || next < there ? next : there;
}

// The neutral element of the reduction.
template <class T>
T identity_of(RowReduction fold) {
  using Limits = std::numeric_limits<T>;
  switch (fold) {
    case RowReduction::Copy:
    case RowReduction::Add:
      return 0;
    case RowReduction::Multiply:
      return 1;
    case RowReduction::Greatest:
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case RowReduction::Least:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  return 0;
}

// there[i] = folded(there[i], next[i]) for i < count; the two rows do not overlap.
template <RowReduction fold, class T>
void reduce_row(T* there, const T* next, int64_t count);

}  // namespace cresset::bridge
