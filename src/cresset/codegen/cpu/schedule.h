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

#include "loop/analysis.h"
#include "loop/collapse.h"
#include "loop/kernel.h"

namespace cresset::codegen::cpu {

using loop::ExprId;
using loop::Loop;
using loop::ScalarId;
using loop::VarId;

// An index expression in the emitter's form. With a valid `coefficient`: expr == coefficient * v + rest for the vector
// variable v, and neither part mentions v. Bound scalars may still make the parts vectors.
struct IndexForm {
  ExprId expr;
  ExprId coefficient;
  ExprId rest;
};

struct Schedule {
  std::vector<Loop> loops;  // nest order
  size_t vector = 0;        // index into loops
  int width = 1;            // lanes of a machine vector (of 32-bit elements)
  int unroll = 1;           // the main loop runs width * unroll lanes at once
  bool masked = false;      // a single masked form of the vector loop's body, instead of a main loop and a masked tail
  int64_t block = 1;        // vector loop outer: its elements in a work item
  int sum_levels = 1;       // levels of float sums: see Accumulator

  std::vector<IndexForm> scalar_index;  // by scalar: Load address or Size value, over the nest's variables
  std::vector<IndexForm> store_index;   // by store
  // Loads which run along a different outer loop than the stores (a transpose). A square tile has `width` points of the
  // tile loop and of the vector loop. Tiles are loaded along the tile loop and transposed in registers. Pointwise
  // kernels only.
  size_t tile = kNoTile;       // index into loops
  int64_t tile_block = 1;      // points of the tile loop in a work item
  std::vector<uint8_t> tiled;  // by scalar: a transposed load
  static constexpr size_t kNoTile = ~size_t{0};

  IndexForm position;  // row-major position over the kernel's inner dims

  // Depth d: computable inside loops of depth <= d. 0: before all items. 1: once for each item. The vector loop and the
  // inner loops follow, a depth for each.
  std::vector<uint16_t> depth;               // by scalar
  std::vector<uint8_t> is_vector;            // by scalar: differs between lanes
  std::vector<uint8_t> live;                 // by scalar
  std::vector<std::vector<uint8_t>> needed;  // [pass][scalar]: computed inside the inner loops of this pass
  std::vector<uint8_t> store_in_row;         // by store: happens once for each outer point, after all passes
  std::vector<ScalarId> spilled;             // kept in scratch from the first pass which computes them
  std::vector<uint16_t> spilled_first;       // the first pass of each
  std::vector<ExprId> unsigned_division;     // FloorDiv/Mod nodes with operands proved >= 0 (sorted by id)
  loop::Analysis analysis;

  ExprId work_items, item_cost, scratch_bytes;  // over size symbols

  bool has_tile() const { return tile != kNoTile; }
  bool vector_is_inner() const { return loops[vector].inner; }
  uint16_t row_depth() const { return vector_is_inner() ? 1 : 2; }
  size_t first_inner() const;              // index into loops; loops.size() when there are none
  uint16_t loop_depth(size_t loop) const;  // of the body of this loop
};

// `vector_bits`: of the machine. Creates variables in the kernel's environment.
Schedule make_schedule(const loop::Kernel& kernel, int vector_bits);

// Returns the decisions of the schedule, over the kernel's canonical names.
std::string schedule_text(const loop::Kernel& kernel, const Schedule& schedule);

// Returns a summary for readers.
std::string describe(const loop::Kernel& kernel, const Schedule& schedule);

}  // namespace cresset::codegen::cpu
