// How values are used, seen through views: what the decision to store a value or to recompute it needs.
#pragma once

#include <functional>
#include <vector>

#include "fuse/memory.h"

namespace cresset::fuse {

struct Use {
  uint32_t count = 0;     // places in other operators that read elements of it
  bool expanded = false;  // some reader reads more elements than there are (by hints)
};

// Indexed by value id. `copied(v)`: the view v gets memory of its own, so it counts as a reader of its argument.
std::vector<Use> count_uses(const Graph& graph, const std::function<bool(ValueId)>& copied);

}  // namespace cresset::fuse
