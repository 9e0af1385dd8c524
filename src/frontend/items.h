// Questions about a few items, in loops that stay small. The standard library's are unrolled four times, with the
// question in each; what runs at every call of the program is to fit into the cache of instructions.
#pragma once

#include <iterator>

namespace cresset::frontend {

template <class Iterator, class Is>
bool any_among(Iterator first, Iterator last, Is&& is) {
  for (; first != last; ++first)
    if (is(*first)) return true;
  return false;
}

template <class Iterator, class Is>
bool all_among(Iterator first, Iterator last, Is&& is) {
  for (; first != last; ++first)
    if (!is(*first)) return false;
  return true;
}

template <class Items, class Item>
bool is_among(const Items& items, const Item& item) {
  for (const auto& other : items)
    if (other == item) return true;
  return false;
}

}  // namespace cresset::frontend
