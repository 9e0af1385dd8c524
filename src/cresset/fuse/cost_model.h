// How a device weighs memory traffic, arithmetic and launches: what fusion decides by. Results do not depend on any of
// it.
#pragma once

#include <cstdint>

#include "base/device.h"

namespace cresset::fuse {

struct CostModel {
  // Cheaper to recompute than to store and load again: at most so many operations.
  uint32_t cheap_operations = 3;
  uint32_t cheap_operations_without_reads = 8;
  // So is a value that is spread from values this many times smaller, which stay in caches (outer products of masks).
  int64_t spread_by = 4;
  // Siblings (kernels that read the same memory) must save at least this share of the smaller one's traffic.
  int64_t sibling_share = 8;
  // Siblings this many extern calls apart stay apart: merged, the later one's result would lie in memory, out of the
  // caches, for as long.
  uint32_t far_apart = 3;
  // A kernel with fewer rows runs on few threads: pointwise work over more points than many_points stays out of it.
  int64_t few_rows = 8, many_points = 1 << 15;
};

const CostModel& cost_model_of(DeviceKind device);

}  // namespace cresset::fuse
