// Memory for the intermediates of calls: a process-wide pool of large blocks. A block serves one call at a time and is
// reused by all programs. A steady state therefore touches no fresh page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace cresset::bridge {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

struct ArenaBlock {
  char* data = nullptr;
  size_t bytes = 0;
  uint64_t id = 0;  // never reused: identifies the block of the last call
};

class ArenaPool {
 public:
  static ArenaPool& get();

  // Returns a block of at least `bytes`, 64-byte aligned; the block `preferred` when it is free and large enough.
  // Contents are arbitrary. bytes == 0 gives an empty block, which need not be released.
  ArenaBlock acquire(size_t bytes, uint64_t preferred);
  void release(const ArenaBlock& block);
  // Returns the memory of all unused blocks to the system.
  void trim();

  struct Stats {
    int64_t bytes_reserved = 0, bytes_in_use = 0, peak_bytes_in_use = 0, blocks = 0;
  };
  Stats stats() const;

 private:
  ArenaPool() = default;
  ArenaBlock map_block(size_t bytes);
  void unmap_block(const ArenaBlock& block);

  mutable std::mutex mutex_;
  std::vector<ArenaBlock> free_;
  uint64_t next_id_ = 1;
  Stats stats_;
};

}  // namespace cresset::bridge
