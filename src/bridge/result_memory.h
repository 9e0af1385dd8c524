// Memory for the tensors that a call allocates through ATen: outputs, and results that libraries make themselves. The
// system's allocator gives large blocks back to the kernel as soon as they are freed, so every call would touch fresh
// pages (a language model's logits: 100 MB, a tenth of its time). Here they are kept for the next call.
#pragma once

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

struct ResultMemoryStats {
  int64_t bytes_in_use = 0, bytes_kept = 0, blocks_mapped = 0;
};
ResultMemoryStats result_memory_stats();

// Gives back all blocks that no tensor holds.
void trim_result_memory();

}  // namespace cresset::bridge
