#include "bridge/device/cuda/cuda_memory.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <memory>
#include <mutex>

#include "base/check.h"

namespace cresset::bridge {
namespace {

class CudaMemory final : public DeviceMemory {
 public:
  explicit CudaMemory(c10::Device device) : DeviceMemory(device, c10::DispatchKey::CUDA) {}

  at::Tensor allocate(c10::IntArrayRef sizes, c10::IntArrayRef strides, at::ScalarType dtype) const override {
    const c10::DeviceGuard on(device());
    return at::Tensor(at::detail::empty_strided_generic(sizes, strides, c10::GetAllocator(c10::kCUDA),
                                                        c10::DispatchKeySet(c10::DispatchKey::CUDA), dtype));
  }
  ArenaBlock acquire(size_t bytes, uint64_t) const override {
    if (bytes == 0) return {};
    const c10::DeviceGuard on(device());
    return {static_cast<char*>(c10::GetAllocator(c10::kCUDA)->raw_allocate(bytes)), bytes, 0};
  }
  void release(const ArenaBlock& block) const override {
    if (block.bytes != 0) c10::GetAllocator(c10::kCUDA)->raw_deallocate(block.data);
  }
  bool reports_itself() const override { return true; }
};

}  // namespace

const DeviceMemory& cuda_memory(c10::Device device) {
  constexpr size_t kMost = 128;  // as in c10
  static auto* const memories = new std::array<std::unique_ptr<CudaMemory>, kMost>;
  static std::mutex mutex;
  const auto index = static_cast<size_t>(device.index());
  CRESSET_CHECK(device.has_index() && index < kMost, "a CUDA device without a number");
  const std::lock_guard lock(mutex);
  std::unique_ptr<CudaMemory>& memory = (*memories)[index];
  if (memory == nullptr) memory = std::make_unique<CudaMemory>(device);
  return *memory;
}

void* current_stream(c10::Device device) {
  const c10::impl::DeviceGuardImplInterface* const cuda = c10::impl::getDeviceGuardImpl(c10::kCUDA);
  return cuda->getStreamNativeHandle(cuda->getStream(device));
}

}  // namespace cresset::bridge
