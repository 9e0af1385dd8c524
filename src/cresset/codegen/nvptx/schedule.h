// How a kernel runs on a GPU, decided before any code is emitted and without sizes. A kernel is a family of functions,
// its variants; a launch picks one by the sizes and addresses that it has (launch.h).
//
// Shapes. Points: no inner loops; a thread computes `lanes` neighbours of the vector loop. Rows: the vector loop is an
// inner one; a group of threads along x shares an outer point, each takes chunks of `lanes` inner points. Columns: the
// vector loop is an outer one around inner loops; threads along x have outer chunks, threads along y share their inner
// points.
//
// Points with transposed loads have tiles too: a block computes a square of the vector loop and another loop. Loads
// with neighbours along that other loop go through shared memory.
#pragma once

#include <string>
#include <vector>

#include "codegen/common/kernel_plan.h"

namespace cresset::codegen::nvptx {

enum class Shape : uint8_t { Points, Rows, Columns };

// Tiled: squares through shared memory, 32-bit indices. Wide: `lanes` elements at a time with whole vector accesses,
// 32-bit indices. Kept: wide rows that fit into registers, read once for all passes. Shared: rows of any alignment that
// fit into shared memory, also read once. Narrow: one element at a time; Narrow64 with 64-bit indices serves every
// size.
enum class Variant : uint8_t { Wide, Kept, Tiled, Shared, Narrow32, Narrow64 };
inline constexpr int kVariants = 6;
std::string_view suffix(Variant variant);  // of the function's name

// Chunks of a row that a thread of the Kept variant holds.
inline constexpr int kKeptChunks = 4;

// Threads of a block of the Kept variant: with 8 lanes a thread needs more registers than 1024 threads have.
inline int most_kept_threads(int lanes) { return lanes > 4 ? 512 : 1024; }

// Rows in shared memory are padded to a multiple of so many points.
inline constexpr int kRowMultiple = 16;

// Threads of a block of the Tiled variant: x along the loop of the accesses, y across it.
inline constexpr int kTileThreadsX = 32, kTileThreadsY = 8;

// Scalars of a row that are kept from the pass which computes them first. Fewer scalars are needed in each pass than
// where rows are read again.
struct KeptRow {
  std::vector<ScalarId> scalars;
  std::vector<uint16_t> first;               // the pass that computes them
  std::vector<std::vector<uint8_t>> needed;  // [pass][scalar]
};

struct Schedule : KernelPlan {
  Shape shape = Shape::Points;
  int lanes = 1;                     // of Wide and Kept; 1: these do not exist
  std::vector<uint8_t> whole_load;   // by scalar: its lanes are one vector access in wide variants
  std::vector<uint8_t> whole_store;  // by store
  std::vector<uint8_t>
      aligned_buffer;  // by buffer: has such accesses, so that addresses must be multiples of their size
  // Divisors over size symbols, more than 1 point each: the launch computes a multiplier for each.
  std::vector<ExprId> divisors;
  ExprId chunks;                   // of the vector loop, in wide variants: among the divisors unless constant
  std::vector<ExprId> conditions;  // all multiples of `lanes` where the wide variants hold
  bool big = false;                // functions of doubles: many registers
  bool in_place = false;           // a buffer is read and written
  bool may_split = false;          // blocks may share the inner points of an outer point

  KeptRow kept;    // in registers: loads and heavy functions
  KeptRow shared;  // in shared memory: loads
  // In shared memory a plain load keeps the element's own dtype.
  DType shared_dtype(const loop::Kernel& kernel, size_t k) const;
  int shared_threads() const;  // most threads of a block

  // Softmax, where rows are read again for each pass: a maximum, and a sum of exp(x - maximum) that is computed with
  // it.
  std::vector<std::pair<ScalarId, ScalarId>> joined;
  bool is_joined_sum(ScalarId id) const;
  std::vector<uint8_t> skipped;      // by pass: all its reductions are joined sums
  int64_t passes_of_splits() const;  // launches before the last, where blocks share rows

  std::vector<ScalarId> scans;  // live scans over a loop: rows in order, which no blocks share

  std::vector<ExprId> numbers;  // outputs of the LaunchPlan (launch.h)

  std::vector<uint8_t> coarse;  // by scalar: approximations to 16 bits serve
  std::vector<uint8_t> tiled;   // by scalar: a load with neighbours along the tile loop
  int tile_side = 0;            // points of both loops in a square

  bool has(Variant variant) const;
  // Whether the last chunk may be short: elsewhere the vector loop is a multiple of the lanes in wide variants.
  bool has_tail() const { return shape == Shape::Points && loops.size() == 1; }
};

// Creates variables and expressions in the kernel's environment.
Schedule make_schedule(const loop::Kernel& kernel);
std::string schedule_text(const loop::Kernel& kernel, const Schedule& schedule);
std::string describe(const loop::Kernel& kernel, const Schedule& schedule);  // for people

}  // namespace cresset::codegen::nvptx
