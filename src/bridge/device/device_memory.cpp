#include "bridge/device/device_memory.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/TensorImpl.h>

#include "base/check.h"
#include "bridge/device/cpu/result_allocator.h"
#include "bridge/device/cuda/cuda_memory.h"

namespace cresset::bridge {
namespace {

class CpuMemory final : public DeviceMemory {
 public:
  CpuMemory() : DeviceMemory(c10::Device(c10::kCPU), c10::DispatchKey::CPU) {}

  at::Tensor allocate(c10::IntArrayRef sizes, c10::IntArrayRef strides, at::ScalarType dtype) const override {
    const PlaceResults no_places;  // the result outlives the call, so it must not lie in temporarily free bytes
    return at::Tensor(at::detail::empty_strided_cpu(sizes, strides, dtype));
  }
  ArenaBlock acquire(size_t bytes, uint64_t preferred) const override {
    return ArenaPool::get().acquire(bytes, preferred);
  }
  void release(const ArenaBlock& block) const override {
    if (block.bytes != 0) ArenaPool::get().release(block);
  }
};

}  // namespace

const DeviceMemory& DeviceMemory::of(c10::Device device) {
  if (device.is_cuda()) return cuda_memory(device);
  CRESSET_CHECK(device.is_cpu(), "programs do not run on " + device.str());
  static const CpuMemory* cpu = new CpuMemory();
  return *cpu;
}

c10::intrusive_ptr<c10::StorageImpl> DeviceMemory::borrow(size_t bytes) const {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), static_cast<int64_t>(bytes),
                                               at::DataPtr(nullptr, device_), nullptr, false);
}

void DeviceMemory::point(c10::StorageImpl& storage, void* memory) const {
  storage.set_data_ptr_noswap(at::DataPtr(memory, device_));
}

at::Tensor DeviceMemory::over(const c10::intrusive_ptr<c10::StorageImpl>& storage, c10::IntArrayRef sizes,
                              c10::IntArrayRef strides, int64_t offset, at::ScalarType dtype) const {
  auto impl = c10::make_intrusive<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(key_),
                                                   c10::scalarTypeToTypeMeta(dtype));
  impl->set_sizes_and_strides(sizes, strides, offset);
  return at::Tensor(std::move(impl));
}

HeldArena::HeldArena(const DeviceMemory& memory, size_t bytes, uint64_t preferred)
    : memory_(memory),
      block_(memory.acquire(bytes, preferred)),
      reported_(c10::memoryProfilingEnabled() && !memory.reports_itself() ? static_cast<int64_t>(bytes) : 0) {
  report(reported_);
}

HeldArena::~HeldArena() {
  report(-reported_);
  memory_.release(block_);
}

void HeldArena::report(int64_t bytes) const {
  if (bytes != 0) c10::reportMemoryUsageToProfiler(block_.data, bytes, 0, 0, memory_.device());
}

}  // namespace cresset::bridge
