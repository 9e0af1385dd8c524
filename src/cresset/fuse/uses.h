// Uses of values, counted through views. The decision to store or recompute a value is based on them.
#pragma once

#include <functional>
#include <vector>

#include "fuse/memory.h"

namespace cresset::fuse {

struct Use {
  uint32_t count = 0;     // number of reads of its elements in other operators
  bool expanded = false;  // a reader reads more elements than the value has (by hints)
};

// Indexed by value id. `copied(v)`: the view v gets memory of its own, so it counts as a reader of its argument.
std::vector<Use> count_uses(const Graph& graph, const std::function<bool(ValueId)>& copied);

}  // namespace cresset::fuse
