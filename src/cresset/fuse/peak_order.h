// An order of steps with a lower memory peak. Every order which respects the dependences gives the same results, so
// hints may choose between orders.
#pragma once

#include <cstdint>
#include <vector>

#include "fuse/plan.h"

namespace cresset::fuse {

// The dependences of units: the units users[u] must follow u.
struct Dependences {
  std::vector<std::vector<uint32_t>> users;
  std::vector<uint32_t> waits;  // number of predecessors
};

// Returns `order`, or an order in which values are made later, just before they are needed. The order is changed only
// if this saves a good part of the memory peak at the sizes of the hints. `position`: the positions of units in the
// graph.
std::vector<uint32_t> order_of_least_peak(const Graph& graph, Memory& memory, const std::vector<Unit>& units,
                                          const Dependences& dependences, const std::vector<uint32_t>& position,
                                          std::vector<uint32_t> order);

}  // namespace cresset::fuse
