// Memory for the tensors that a call allocates through ATen: outputs, and results that libraries make themselves. The
// system's allocator gives large blocks back to the kernel as soon as they are freed, so every call would touch fresh
// pages (a language model's logits: 100 MB, a tenth of its time). Here they are kept for the next call.
#pragma once

#include <c10/util/SmallVector.h>

#include <cstddef>
#include <cstdint>

namespace cresset::bridge {

// While one lives, this thread's large CPU allocations come from the pool. A block returns to it when its tensor dies,
// on whatever thread that is; until then it is an allocation like any other.
class ReuseResultMemory {
 public:
  ReuseResultMemory();
  ~ReuseResultMemory();
  ReuseResultMemory(const ReuseResultMemory&) = delete;
  ReuseResultMemory& operator=(const ReuseResultMemory&) = delete;

 private:
  bool before_;
};

// Memory that waits for a result.
struct Place {
  void* data;  // nullptr: a result of so many bytes allocates its own
  size_t bytes;
  bool taken = false;
};

// While one lives, an allocation of this thread that asks for exactly a place's bytes gets that place, as long as no
// other has it: so operators that allocate their results themselves write into planned memory. Other allocations, from
// `least_in_gap` bytes on, are cut from the gaps: what operators need for a while lies where nothing is alive. All of
// it must die before this does; any_taken() tells. An inner one hides the outer one.
class PlaceResults {
 public:
  using Places = c10::SmallVector<Place, 4>;
  static constexpr size_t kLarge = 4096, kLine = 64;  // operators in general may keep what is smaller
  explicit PlaceResults(Places places = {}, Places gaps = {}, size_t least_in_gap = kLarge);
  ~PlaceResults();
  PlaceResults(const PlaceResults&) = delete;
  PlaceResults& operator=(const PlaceResults&) = delete;
  bool any_taken() const;
  size_t asked() const { return asked_; }    // bytes asked for, other than results, each from a line on
  size_t missed() const { return missed_; }  // of them, those that no gap had room for

  // For the allocator. nullptr: none.
  static void* take(size_t bytes);
  static bool give_back(const void* data);
  // Whether something lies there.
  static bool holds(const void* data);

 private:
  void* take_here(size_t bytes);
  Places places_, gaps_;
  const size_t results_;  // that many of places_
  const size_t least_in_gap_;
  size_t asked_ = 0, missed_ = 0;
  PlaceResults* const before_;
};

struct ResultMemoryStats {
  int64_t bytes_in_use = 0, bytes_kept = 0, blocks_mapped = 0;
};
ResultMemoryStats result_memory_stats();

// Gives back all blocks that no tensor holds.
void trim_result_memory();

}  // namespace cresset::bridge
