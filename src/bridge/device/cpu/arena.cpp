#include "bridge/device/cpu/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace cresset::bridge {
namespace {

constexpr size_t kMaxFreeBlocks = 4;

// Grows by a quarter, so slowly increasing sizes rarely require a new block.
size_t rounded(size_t bytes) {
  const size_t grown = bytes + bytes / 4;
  const size_t unit = grown >= kHugePage ? kHugePage : kPage;
  return (grown + unit - 1) / unit * unit;
}

}  // namespace

ArenaPool& ArenaPool::get() {
  static ArenaPool* pool = new ArenaPool;  // never destroyed: threads may still run at exit
  return *pool;
}

ArenaBlock ArenaPool::map_block(size_t bytes) {
  const size_t size = rounded(bytes);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  if (size >= 2 * kHugePage) madvise(data, size, MADV_HUGEPAGE);
  stats_.bytes_reserved += static_cast<int64_t>(size);
  ++stats_.blocks;
  return {static_cast<char*>(data), size, next_id_++};
}

void ArenaPool::unmap_block(const ArenaBlock& block) {
  munmap(block.data, block.bytes);
  stats_.bytes_reserved -= static_cast<int64_t>(block.bytes);
  --stats_.blocks;
}

ArenaBlock ArenaPool::acquire(size_t bytes, uint64_t preferred) {
  if (bytes == 0) return {};
  const std::lock_guard lock(mutex_);
  // The preferred block, else the smallest fitting block.
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->bytes < bytes) continue;
    if (it->id == preferred) {
      best = it;
      break;
    }
    if (best == free_.end() || it->bytes < best->bytes) best = it;
  }
  ArenaBlock block;
  if (best != free_.end()) {
    block = *best;
    free_.erase(best);
  } else {
    // No block is large enough. A larger block replaces the largest free block, because it serves the same requests.
    auto largest = std::max_element(free_.begin(), free_.end(),
                                    [](const ArenaBlock& a, const ArenaBlock& b) { return a.bytes < b.bytes; });
    if (largest != free_.end()) {
      unmap_block(*largest);
      free_.erase(largest);
    }
    block = map_block(bytes);
  }
  stats_.bytes_in_use += static_cast<int64_t>(block.bytes);
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  return block;
}

void ArenaPool::release(const ArenaBlock& block) {
  const std::lock_guard lock(mutex_);
  stats_.bytes_in_use -= static_cast<int64_t>(block.bytes);
  free_.push_back(block);
  if (free_.size() <= kMaxFreeBlocks) return;
  auto smallest = std::min_element(free_.begin(), free_.end(),
                                   [](const ArenaBlock& a, const ArenaBlock& b) { return a.bytes < b.bytes; });
  unmap_block(*smallest);
  free_.erase(smallest);
}

void ArenaPool::trim() {
  const std::lock_guard lock(mutex_);
  for (const ArenaBlock& block : free_) unmap_block(block);
  free_.clear();
}

ArenaPool::Stats ArenaPool::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace cresset::bridge
