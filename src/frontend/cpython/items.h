// Searches over a few items, as small loops. The standard library's algorithms are unrolled four times, with the
// predicate inlined in each copy. Code which runs at every call of the program should fit into the instruction cache.
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
