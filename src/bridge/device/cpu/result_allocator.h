// Memory for tensors which a call allocates through ATen: outputs, and results which libraries allocate. The system
// allocator returns large blocks to the kernel as soon as they are freed, so every call would touch fresh pages (a
// language model's logits: 100 MB, a tenth of its time). Here blocks are kept for the next call.
#pragma once

#include <c10/util/SmallVector.h>

#include <cstddef>
#include <cstdint>

namespace cresset::bridge {

// RAII: this thread's large CPU allocations come from the pool. A block returns to the pool when its tensor dies, on
// any thread; until then it is an ordinary allocation.
class ReuseResultMemory {
 public:
  ReuseResultMemory();
  ~ReuseResultMemory();
  ReuseResultMemory(const ReuseResultMemory&) = delete;
  ReuseResultMemory& operator=(const ReuseResultMemory&) = delete;

 private:
  bool before_;
};

// Planned memory reserved for a result.
struct Place {
  void* data;  // nullptr: a result of this size allocates its own memory
  size_t bytes;
  bool taken = false;
};

// RAII: an allocation of this thread with exactly a place's size gets the place, if it is still free. Operators which
// allocate their results thus write into planned memory. Other allocations of at least `least_in_gap` bytes come from
// the gaps, so temporary buffers lie in dead memory. All these allocations must die before this object; any_taken()
// tells. An inner object hides the outer one.
class PlaceResults {
 public:
  using Places = c10::SmallVector<Place, 4>;
  static constexpr size_t kLarge = 4096, kLine = 64;  // operators may keep smaller allocations
  explicit PlaceResults(Places places = {}, Places gaps = {}, size_t least_in_gap = kLarge);
  ~PlaceResults();
  PlaceResults(const PlaceResults&) = delete;
  PlaceResults& operator=(const PlaceResults&) = delete;
  bool any_taken() const;
  size_t asked() const { return asked_; }    // bytes requested beside results, each rounded up to a line
  size_t missed() const { return missed_; }  // the part of them without room in a gap

  // For the allocator. nullptr: no place is available.
  static void* take(size_t bytes);
  static bool give_back(const void* data);
  // Whether `data` is memory which the current object has handed out.
  static bool holds(const void* data);

 private:
  void* take_here(size_t bytes);
  Places places_, gaps_;
  const size_t results_;  // so many entries of places_ are results
  const size_t least_in_gap_;
  size_t asked_ = 0, missed_ = 0;
  PlaceResults* const before_;
};

struct ResultMemoryStats {
  int64_t bytes_in_use = 0, bytes_kept = 0, blocks_mapped = 0;
};
ResultMemoryStats result_memory_stats();

// Frees all blocks which no tensor holds.
void trim_result_memory();

}  // namespace cresset::bridge
