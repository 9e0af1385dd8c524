// Folding a row of elements into another: what writes at places that indices name does with what lies there.
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

// What changes nothing when something is folded into it.
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

// there[i] = folded(there[i], next[i]) for i < count; the two do not overlap.
template <Fold fold, class T>
void fold_row(T* there, const T* next, int64_t count);

}  // namespace cresset::bridge
