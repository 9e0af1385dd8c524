// An order of steps that needs less memory at once. Any order that keeps to the dependences gives the same results, so
// that hints may decide between them.
#pragma once

#include <cstdint>
#include <vector>

#include "fuse/plan.h"

namespace cresset::fuse {

// Which units must come after which: users[u] follow u.
struct Dependences {
  std::vector<std::vector<uint32_t>> users;
  std::vector<uint32_t> waits;  // how many units come before
};

// `order`, or one in which values are made later, just before they are needed, where that saves a good part of the
// bytes that are alive together at the sizes of the hints. `position`: where units stand in the graph.
std::vector<uint32_t> order_of_least_peak(const Graph& graph, Memory& memory, const std::vector<Unit>& units,
                                          const Dependences& dependences, const std::vector<uint32_t>& position,
                                          std::vector<uint32_t> order);

}  // namespace cresset::fuse
