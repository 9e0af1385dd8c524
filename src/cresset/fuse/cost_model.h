// A device's costs of memory traffic, arithmetic and launches. Fusion decides by them. Results do not depend on them.
#pragma once

#include <cstdint>

#include "base/device.h"

namespace cresset::fuse {

struct CostModel {
  // Up to this number of operations, recomputing a value is cheaper than storing and loading it.
  uint32_t cheap_operations = 3;
  uint32_t cheap_operations_without_reads = 8;
  // Recomputing is also cheaper for a value whose inputs have at most this percentage of its bytes: small inputs stay
  // in caches (outer products of masks).
  int64_t inputs_percent = 25;
  // Up to this number of operations of many instructions are computed again for each element of a value that is
  // broadcast, and for each use of a value of few arguments, at most small_bytes of numbers: a kernel of its own
  // would cost more.
  uint32_t heavy_again = 0;
  int64_t small_bytes = 0;
  // Siblings (kernels which read the same memory) must save at least this share of the smaller kernel's traffic.
  int64_t sibling_share = 8;
  // Siblings separated by this many extern calls are not merged. In a merged kernel the later result would lie in
  // memory, outside the caches, for this time.
  uint32_t far_apart = 3;
  // A kernel with fewer rows runs on few threads. Pointwise work over more than many_points points is not merged into
  // it.
  int64_t few_rows = 8, many_points = 1 << 15;
};

const CostModel& cost_model_of(DeviceKind device);

}  // namespace cresset::fuse
