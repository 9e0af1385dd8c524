// Row reductions: combines a row of elements with another row, for operators which write at indexed positions.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <limits>

namespace cresset::bridge {

enum class Fold : uint8_t { Copy, Add, Multiply, Greatest, Least };

// NaN counts as greatest and as least.
template <Fold fold, class T>
inline T folded(T there, T next) {
  if constexpr (fold == Fold::Copy) return next;
  if constexpr (fold == Fold::Add) return there + next;
  if constexpr (fold == Fold::Multiply) return there * next;
  if constexpr (fold == Fold::Greatest) return next != next || there < next ? next : there;
  if constexpr (fold == Fold::Least) return next != next || next < there ? next : there;
}

// The neutral element of the reduction.
template <class T>
T identity_of(Fold fold) {
  using Limits = std::numeric_limits<T>;
  switch (fold) {
    case Fold::Copy:
    case Fold::Add:
      return 0;
    case Fold::Multiply:
      return 1;
    case Fold::Greatest:
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case Fold::Least:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  return 0;
}

// there[i] = folded(there[i], next[i]) for i < count; the two rows do not overlap.
template <Fold fold, class T>
void fold_row(T* there, const T* next, int64_t count);

}  // namespace cresset::bridge
