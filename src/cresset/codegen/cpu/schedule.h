// How a kernel runs on a CPU: loop order, what is vectorized, what a work item is. Plain data, decided from the kernel
// before any code is emitted; equal (canonical kernel text, schedule text) give equal code.
//
// The nest, outside in: sequential outer loops, the vector loop when it is an outer one, sequential inner loops, the
// vector loop when it is an inner one. Lanes run along the vector loop.
//   Vector loop inner: a work item is one outer point; passes run over its inner points, lanes are folded at the end.
//   Vector loop outer: a work item is a block of the vector loop for one point of the others; row scalars and
//   accumulators are vectors. A pointwise kernel is the case with no inner loops.
#pragma once

#include <string>
#include <vector>

#include "codegen/common/kernel_plan.h"

namespace cresset::codegen::cpu {

struct Schedule : KernelPlan {
  int width = 1;        // lanes of one machine vector (of 32-bit elements)
  int unroll = 1;       // the main loop runs width * unroll lanes at once
  bool masked = false;  // one masked form of the vector loop's body, instead of a main loop and a masked tail
  int64_t block = 1;    // vector loop outer: elements of it in a work item
  int sum_levels = 1;   // how often running float sums are put away: see Accumulator

  // Loads that run along another outer loop than the stores do (a transpose): square tiles of `width` points of the
  // tile loop by as many of the vector loop are loaded along the former and turned over in registers. Pointwise kernels
  // only.
  int64_t tile_block = 1;      // points of the tile loop in a work item
  std::vector<uint8_t> tiled;  // by scalar: a load that is turned over

  ExprId work_items, item_cost, scratch_bytes;  // over size symbols
};

// `vector_bits`: of the machine. Creates variables in the kernel's environment.
Schedule make_schedule(const loop::Kernel& kernel, int vector_bits);

// What the schedule decided, over the kernel's canonical names.
std::string schedule_text(const loop::Kernel& kernel, const Schedule& schedule);

// The gist of it, for people.
std::string describe(const loop::Kernel& kernel, const Schedule& schedule);

}  // namespace cresset::codegen::cpu
