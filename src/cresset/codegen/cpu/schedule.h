// The schedule of a kernel on a CPU: loop order, vectorized loop, work items. A schedule is plain data, decided from
// the kernel before any code is emitted. Equal (canonical kernel text, schedule text) give equal code.
//
// The nest, from the outside in: sequential outer loops, the vector loop if it is an outer loop, sequential inner
// loops, the vector loop if it is an inner loop. Lanes run along the vector loop.
//   Vector loop inner: a work item is an outer point; passes run over its inner points, and lanes are folded at the
//   end. Vector loop outer: a work item is a block of the vector loop for a point of the other loops; row scalars and
//   accumulators are vectors. A pointwise kernel is the case without inner loops.
#pragma once

#include <string>
#include <vector>

#include "codegen/common/kernel_plan.h"

namespace cresset::codegen::cpu {

struct Schedule : KernelPlan {
  int width = 1;        // lanes of a machine vector (of 32-bit elements)
  int unroll = 1;       // the main loop runs width * unroll lanes at once
  bool masked = false;  // a single masked form of the vector loop's body, instead of a main loop and a masked tail
  int64_t block = 1;    // vector loop outer: its elements in a work item
  int sum_levels = 1;   // levels of float sums: see Accumulator

  // Loads which run along a different outer loop than the stores (a transpose). A square tile has `width` points of the
  // tile loop and of the vector loop. Tiles are loaded along the tile loop and transposed in registers. Pointwise
  // kernels only.
  int64_t tile_block = 1;      // points of the tile loop in a work item
  std::vector<uint8_t> tiled;  // by scalar: a transposed load

  ExprId work_items, item_cost, scratch_bytes;  // over size symbols
};

// `vector_bits`: of the machine. Creates variables in the kernel's environment.
Schedule make_schedule(const loop::Kernel& kernel, int vector_bits);

// Returns the decisions of the schedule, over the kernel's canonical names.
std::string schedule_text(const loop::Kernel& kernel, const Schedule& schedule);

// Returns a summary for readers.
std::string describe(const loop::Kernel& kernel, const Schedule& schedule);

}  // namespace cresset::codegen::cpu
