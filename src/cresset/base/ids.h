// Typed 4-byte ids. An entity is referenced by its index in the pool which owns it, never by a pointer.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace cresset {

template <class Tag>
struct Id {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t index = kNone;

  constexpr bool valid() const { return index != kNone; }
  constexpr bool operator==(const Id&) const = default;
  constexpr auto operator<=>(const Id&) const = default;
};

}  // namespace cresset

template <class Tag>
struct std::hash<cresset::Id<Tag>> {
  size_t operator()(cresset::Id<Tag> id) const { return std::hash<uint32_t>{}(id.index); }
};
