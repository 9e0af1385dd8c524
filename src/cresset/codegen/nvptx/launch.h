// From the sizes and addresses of a call to a launch: which variant, which grid. Reads the outputs of a kernel's
// LaunchPlan only, so that kernels from disk need nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "codegen/nvptx/schedule.h"

namespace cresset::codegen::nvptx {

// Outputs of a GPU kernel's LaunchPlan, in order. The first ones are numbers of the schedule, the same at every size.
enum Number : uint8_t {
  kShape,
  kLanes,
  kVariantSet,     // bit i: variant i exists
  kReductions,     // values of 8 bytes that a group shares for each outer point: two for an ArgMax
  kStages,         // passes before the last
  kMaySplit,       // several blocks may share the inner points of an outer point
  kInOrder,        // columns have one thread each
  kPasses,         // over the data, where rows are read again
  kRowBytes,       // of shared memory for each point of a row
  kSharedThreads,  // most threads of a block with a row in shared memory
  kWidestBytes,    // of an element that is read or written at each point
  kTileSide,       // points of both loops in a square of the Tiled variant
  kTileExtent,
  kBuffers,      // entries of alignment follow the numbers
  kByValue,      // bit i: buffer i is a single element, passed in the place of its address...
  kByValueLog,   // ... whose bytes are 1 << bits 2i and 2i + 1
  kGreatest,     // bound of every index expression, at most kNoIndex32
  kWideHolds,    // 0 where all strides allow whole vectors
  kOuterPoints,  // without the vector loop
  kVectorExtent,
  kInnerPoints,  // without the vector loop
  kFirstFree     // then: alignment wanted of each buffer (bytes), then the divisors
};

// Greater than all indices of 32-bit variants.
inline constexpr int64_t kNoIndex32 = int64_t{1} << 31;

// A multiplier and a shift in one number: n / divisor == (n * multiplier) >> shift for n < 2^31.
uint64_t magic_of(int64_t divisor);

// Dynamic shared memory of a block on the greatest chip: its 227 KB less the static part.
inline constexpr int64_t kMostSharedBytes = 223 * 1024;

struct Machine {
  int multiprocessors = 132;
  int64_t most_threads = 2048;  // resident on a multiprocessor
  int64_t shared_bytes = kMostSharedBytes;
  std::array<int, kVariants> registers{};  // of a thread of each variant; 0: not known
  // Of a variant's blocks, as many as a multiprocessor holds at once.
  int64_t resident_blocks(Variant variant, int64_t threads) const;
};

struct Launch {
  Variant variant = Variant::Narrow64;
  uint32_t grid_x = 0, grid_y = 1, block_x = 1, block_y = 1;
  uint32_t splits = 1;          // blocks along y that share outer points; launched once a pass
  uint32_t shared_bytes = 0;    // dynamic
  int64_t workspace_bytes = 0;  // for what splits leave for the next launch
  bool nothing() const { return grid_x == 0; }
};

// The numbers of one call.
class Numbers {
 public:
  explicit Numbers(std::span<const int64_t> outputs) : outputs_(outputs) {}
  int64_t operator[](Number n) const { return outputs_[n]; }
  Shape shape() const { return static_cast<Shape>(outputs_[kShape]); }
  bool has(Variant v) const { return (outputs_[kVariantSet] >> static_cast<int>(v) & 1) != 0; }
  std::span<const int64_t> alignments() const { return outputs_.subspan(kFirstFree, buffers()); }
  std::span<const int64_t> divisors() const { return outputs_.subspan(kFirstFree + buffers()); }
  // Whether the variant computes this call rightly; speed apart.
  bool allows(Variant variant, std::span<const uint64_t> addresses) const;
  // Replaces the addresses of buffers that are passed by value with their elements, which lie in host memory.
  void pass_values(std::span<int64_t> parameters) const;
  int lanes(Variant v) const {
    return v == Variant::Wide || v == Variant::Kept ? static_cast<int>(outputs_[kLanes]) : 1;
  }
  int64_t outer_chunks(Variant variant) const;
  int64_t inner_chunks(Variant variant) const;

 private:
  size_t buffers() const { return static_cast<size_t>(outputs_[kBuffers]); }
  std::span<const int64_t> outputs_;
};

// A launch of that variant, with that many threads sharing an outer point and blocks splitting its inner points; 0:
// chosen by size. For tests, and for choose_launch.
Launch launch_of(const Numbers& numbers, Variant variant, const Machine& machine, int64_t group = 0,
                 int64_t splits = 0);
Launch choose_launch(const Numbers& numbers, std::span<const uint64_t> addresses, const Machine& machine);

}  // namespace cresset::codegen::nvptx
