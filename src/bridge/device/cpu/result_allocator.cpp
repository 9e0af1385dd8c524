#include "bridge/device/cpu/result_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "bridge/device/cpu/arena.h"

namespace cresset::bridge {
namespace {

constexpr size_t kLeast = size_t{1} << 20;  // below, malloc keeps its memory itself
constexpr size_t kAlwaysKept = size_t{256} << 20;
constexpr int64_t kPeriod = 4096;  // allocations

struct Block {
  void* data;
  size_t bytes;
};

class Pool {
 public:
  static Pool& get() {
    static Pool* pool = new Pool;  // never destroyed: tensors may outlive everything
    return *pool;
  }

  // nullptr: out of memory.
  void* take(size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = best_fit(bytes); found != kept_.end()) {
        const Block block = *found;
        kept_.erase(found);
        kept_bytes_ -= block.bytes;
        hold(block);
        return block.data;
      }
    }
    const size_t unit = bytes >= 2 * kHugePage ? kHugePage : kPage;
    const Block block = map((bytes + unit - 1) / unit * unit);
    if (block.data == nullptr) return nullptr;
    const std::lock_guard lock(mutex_);
    ++mapped_;
    hold(block);
    return block.data;
  }

  bool holds(void* data) {
    const std::lock_guard lock(mutex_);
    return held_.count(data) != 0;
  }

  void give_back(void* data) {
    const std::lock_guard lock(mutex_);
    const auto held = held_.find(data);
    kept_.push_back({data, held->second});
    kept_bytes_ += held->second;
    held_bytes_ -= held->second;
    held_.erase(held);
    drop_beyond(most_kept());
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    highest_ = held_bytes_;
    highest_before_ = 0;
    drop_beyond(0);
  }

  ResultMemoryStats stats() {
    const std::lock_guard lock(mutex_);
    return {static_cast<int64_t>(held_bytes_), static_cast<int64_t>(kept_bytes_), mapped_};
  }

 private:
  // The smallest fitting block; among equals the last freed, which may still be cached. A block is rejected if most of
  // it would be unused.
  std::vector<Block>::iterator best_fit(size_t bytes) {
    auto best = kept_.end();
    for (auto it = kept_.begin(); it != kept_.end(); ++it)
      if (it->bytes >= bytes && it->bytes <= 2 * bytes && (best == kept_.end() || it->bytes <= best->bytes)) best = it;
    return best;
  }

  void hold(const Block& block) {
    held_.emplace(block.data, block.bytes);
    held_bytes_ += block.bytes;
    highest_ = std::max(highest_, held_bytes_);
    if (++takes_ % kPeriod != 0) return;
    highest_before_ = std::exchange(highest_, held_bytes_);
    drop_beyond(most_kept());
  }

  // A training step frees in its backward pass the memory which the next forward pass allocates again. The pool
  // therefore keeps as much as was recently held at once.
  size_t most_kept() const { return std::max(kAlwaysKept, std::max(highest_, highest_before_) - held_bytes_); }

  // Drops the blocks which were unused for the longest time.
  void drop_beyond(size_t most) {
    while (kept_bytes_ > most) {
      munmap(kept_.front().data, kept_.front().bytes);
      kept_bytes_ -= kept_.front().bytes;
      kept_.erase(kept_.begin());
    }
  }

  static Block map(size_t bytes) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return {nullptr, 0};
    if (bytes >= 2 * kHugePage) madvise(data, bytes, MADV_HUGEPAGE);
    return {data, bytes};
  }

  std::mutex mutex_;
  std::vector<Block> kept_;  // ordered by time of release
  std::unordered_map<void*, size_t> held_;
  size_t kept_bytes_ = 0, held_bytes_ = 0;
  size_t highest_ = 0, highest_before_ = 0;  // maxima of held_bytes_, in this period and the previous period
  int64_t mapped_ = 0, takes_ = 0;
};

thread_local bool reusing = false;
thread_local PlaceResults* places = nullptr;
c10::DeleterFnPtr system_deleter = nullptr;

void release_block(void* data) {
  c10::profiledCPUMemoryReporter().Delete(data);
  Pool::get().give_back(data);
}

void release_place(void* data) { PlaceResults::give_back(data); }

// For a holder of a bare address which asks the allocator how to free it.
void release_any(void* data) {
  if (PlaceResults::give_back(data)) return;
  if (Pool::get().holds(data)) return release_block(data);
  system_deleter(data);
}

// Wraps the process's CPU allocator, which still serves all allocations outside of cresset's calls.
class ReusingAllocator final : public c10::Allocator {
 public:
  explicit ReusingAllocator(c10::Allocator* system) : system_(system) { system_deleter = system->raw_deleter(); }

  c10::DataPtr allocate(size_t bytes) override {
    if (!reusing) return system_->allocate(bytes);
    if (void* place = PlaceResults::take(bytes)) return {place, place, &release_place, c10::Device(c10::kCPU)};
    if (bytes < kLeast) return system_->allocate(bytes);
    void* data = Pool::get().take(bytes);
    if (data == nullptr) return system_->allocate(bytes);  // which reports the lack of memory as in eager mode
    c10::profiledCPUMemoryReporter().New(data, bytes);
    return {data, data, &release_block, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return system_deleter == nullptr ? nullptr : &release_any; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  c10::Allocator* const system_;
};

void install() {
  static const bool once = [] {
    c10::SetCPUAllocator(new ReusingAllocator(c10::GetCPUAllocator()));  // torch keeps the pointer forever
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

ReuseResultMemory::ReuseResultMemory() : before_(reusing) {
  install();
  reusing = true;
}
ReuseResultMemory::~ReuseResultMemory() { reusing = before_; }

PlaceResults::PlaceResults(Places results, Places gaps, size_t least_in_gap)
    : places_(std::move(results)),
      gaps_(std::move(gaps)),
      results_(places_.size()),
      least_in_gap_(least_in_gap),
      before_(places) {
  places = this;
}
PlaceResults::~PlaceResults() { places = before_; }
bool PlaceResults::any_taken() const {
  return std::any_of(places_.begin(), places_.end(), [](const Place& place) { return place.taken; });
}
void* PlaceResults::take(size_t bytes) { return places == nullptr ? nullptr : places->take_here(bytes); }
void* PlaceResults::take_here(size_t bytes) {
  bool like_a_result = false;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].bytes != bytes) continue;
    like_a_result |= i < results_;
    if (places_[i].taken || places_[i].data == nullptr) continue;
    places_[i].taken = true;
    return places_[i].data;
  }
  // If a result's place is taken, the result gets memory of its own: from a gap it would have to be copied.
  if (like_a_result || bytes < least_in_gap_) return nullptr;
  asked_ += (bytes + kLine - 1) / kLine * kLine;
  Place* tightest = nullptr;
  for (Place& gap : gaps_)
    if (gap.bytes >= bytes && (tightest == nullptr || gap.bytes < tightest->bytes)) tightest = &gap;
  if (tightest == nullptr) {
    missed_ += bytes;
    return nullptr;
  }
  void* const data = tightest->data;
  const size_t lines = std::min(tightest->bytes, (bytes + kLine - 1) / kLine * kLine);
  tightest->data = static_cast<char*>(data) + lines;
  tightest->bytes -= lines;
  places_.push_back({data, bytes, true});
  return data;
}
bool PlaceResults::holds(const void* data) {
  if (places == nullptr) return false;
  return std::any_of(places->places_.begin(), places->places_.end(),
                     [&](const Place& place) { return place.taken && place.data == data; });
}
bool PlaceResults::give_back(const void* data) {
  if (places == nullptr) return false;
  for (Place& place : places->places_) {
    if (!place.taken || place.data != data) continue;
    place.taken = false;
    return true;
  }
  return false;
}

ResultMemoryStats result_memory_stats() { return Pool::get().stats(); }
void trim_result_memory() { Pool::get().trim(); }

}  // namespace cresset::bridge
