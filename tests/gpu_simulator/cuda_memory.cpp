#include "cuda_memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

#include "cuda_devices.h"

namespace cresset::gpu_simulator {
namespace {

constexpr size_t kAlignment = 512;  // of torch's allocator on GPUs

struct Block {
  size_t bytes;
  c10::DeviceIndex device;
  bool kept;
};

thread_local bool keeping = false;

// Of the process; never destroyed, since tensors die late.
struct Memory {
  std::mutex mutex;
  std::array<MemoryCounters, kDevices> counters;
  std::unordered_map<void*, Block> blocks;
  std::map<const void*, size_t> pinned;  // by first byte
  std::atomic<int> garbage = 0xa5;
};
Memory& memory() {
  static auto* const memory = new Memory();
  return *memory;
}

void count(size_t bytes, c10::DeviceIndex device) {
  MemoryCounters& counters = memory().counters[static_cast<size_t>(device)];
  const int64_t live = counters.live_bytes + static_cast<int64_t>(bytes);
  TORCH_CHECK_WITH(OutOfMemoryError, counters.limit == 0 || live <= counters.limit,
                   "CUDA out of memory. Tried to allocate ", bytes, " bytes. GPU ", static_cast<int>(device),
                   " has a total capacity of ", counters.limit, " bytes of which ",
                   counters.limit - counters.live_bytes, " bytes are free.");
  ++counters.allocations;
  counters.allocated_bytes += static_cast<int64_t>(bytes);
  counters.live_bytes = live;
  counters.peak_bytes = std::max(counters.peak_bytes, live);
}

void uncount(size_t bytes, c10::DeviceIndex device) {
  memory().counters[static_cast<size_t>(device)].live_bytes -= static_cast<int64_t>(bytes);
}

void* take(size_t bytes) {
  void* const out = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  TORCH_CHECK_WITH(OutOfMemoryError, out != nullptr, "the host is out of memory");
  std::memset(out, memory().garbage, bytes);
  return out;
}

void free_block(void* data) {
  {
    std::lock_guard lock(memory().mutex);
    const auto found = memory().blocks.find(data);
    if (found->second.kept) return;
    uncount(found->second.bytes, found->second.device);
    memory().blocks.erase(found);
  }
  std::free(data);
}

void* allocate_block(size_t bytes, c10::DeviceIndex device) {
  if (bytes == 0) return nullptr;
  {
    std::lock_guard lock(memory().mutex);
    count(bytes, device);
  }
  void* const data = take(bytes);
  std::lock_guard lock(memory().mutex);
  memory().blocks[data] = {bytes, device, keeping};
  return data;
}

// torch asks it for its state; statistics come from memory() (module.cpp).
class CudaAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device(c10::kCUDA, current_device());
    void* const data = allocate_block(bytes, device.index());
    return {data, data, data == nullptr ? &c10::detail::deleteNothing : &free_block, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return {}; }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
};

class ViewAllocator final : public c10::Allocator {
 public:
  explicit ViewAllocator(c10::DeviceIndex device) : device_(device) {}
  c10::DataPtr allocate(size_t bytes) override {
    void* const data = allocate_block(bytes, device_);
    return {data, data, data == nullptr ? &c10::detail::deleteNothing : &free_block, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  const c10::DeviceIndex device_;
};

void free_pinned(void* data) {
  {
    std::lock_guard lock(memory().mutex);
    memory().pinned.erase(data);
  }
  std::free(data);
}

class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* const data = take(std::max<size_t>(bytes, 1));
    std::lock_guard lock(memory().mutex);
    memory().pinned[data] = std::max<size_t>(bytes, 1);
    return {data, data, &free_pinned, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};

// The context of an adopted pointer.
struct Adopted {
  c10::Storage storage;
  size_t counted_bytes;  // 0: the memory is a block, which is counted already
  c10::DeviceIndex device;
};

void free_adopted(void* context) {
  std::unique_ptr<Adopted> adopted(static_cast<Adopted*>(context));
  std::lock_guard lock(memory().mutex);
  uncount(adopted->counted_bytes, adopted->device);
  adopted->counted_bytes = 0;
}

}  // namespace

MemoryCounters memory_counters(c10::DeviceIndex device) {
  std::lock_guard lock(memory().mutex);
  return memory().counters.at(static_cast<size_t>(device));
}

void reset_peak(c10::DeviceIndex device) {
  std::lock_guard lock(memory().mutex);
  MemoryCounters& counters = memory().counters.at(static_cast<size_t>(device));
  counters.peak_bytes = counters.live_bytes;
}

void set_memory_limit(c10::DeviceIndex device, int64_t bytes) {
  std::lock_guard lock(memory().mutex);
  memory().counters.at(static_cast<size_t>(device)).limit = bytes;
}

void begin_keeping() { keeping = true; }
void end_keeping() { keeping = false; }

void set_garbage(uint8_t byte) { memory().garbage = byte; }

c10::Allocator& cuda_allocator() {
  static auto* const allocator = new CudaAllocator();
  return *allocator;
}

c10::Allocator& view_allocator(c10::DeviceIndex device) {
  static const std::array<ViewAllocator*, kDevices> allocators{new ViewAllocator(0), new ViewAllocator(1)};
  return *allocators.at(static_cast<size_t>(device));
}

c10::Allocator& pinned_allocator() {
  static auto* const allocator = new PinnedAllocator();
  return *allocator;
}

bool is_pinned(const void* data) {
  std::lock_guard lock(memory().mutex);
  auto after = memory().pinned.upper_bound(data);
  if (after == memory().pinned.begin()) return false;
  --after;
  return static_cast<const char*>(data) < static_cast<const char*>(after->first) + after->second;
}

c10::DataPtr adopt(const c10::Storage& cpu, c10::DeviceIndex device) {
  const bool is_block = dynamic_cast<ViewAllocator*>(cpu.allocator()) != nullptr;
  auto adopted = std::make_unique<Adopted>(Adopted{cpu, is_block ? 0 : cpu.nbytes(), device});
  {
    std::lock_guard lock(memory().mutex);
    if (adopted->counted_bytes != 0) count(adopted->counted_bytes, device);
  }
  void* const data = cpu.unsafeGetStorageImpl()->mutable_data();
  return {data, adopted.release(), &free_adopted, c10::Device(c10::kCUDA, device)};
}

}  // namespace cresset::gpu_simulator
