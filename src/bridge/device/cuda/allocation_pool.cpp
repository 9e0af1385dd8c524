#include "bridge/device/cuda/allocation_pool.h"

// With the declarations of headers/, not those of a CUDA toolkit.
#include <c10/cuda/CUDACachingAllocator.h>

#include <atomic>

namespace cresset::bridge {
namespace {

// The registered allocator of a torch with CUDA is of this class; its functions are virtual, and called without torch's
// CUDA library.
c10::cuda::CUDACachingAllocator::CUDAAllocator& allocator() {
  return *static_cast<c10::cuda::CUDACachingAllocator::CUDAAllocator*>(c10::GetAllocator(c10::kCUDA));
}

// torch's own pools have a zero in either place. Its tables of pools hash the first number alone, and grow without end
// where several pools have the same one.
c10::MempoolId_t new_pool_id() {
  constexpr uint64_t kOurs = uint64_t{0x63726573} << 32;
  static std::atomic<uint64_t> count = 0;
  return {kOurs + ++count, 1};
}

// Newer versions of torch want to hear that a stream records.
void tell(auto& allocator, c10::DeviceIndex device, bool begins) {
  if constexpr (requires { allocator.markCaptureBegin(device); })
    begins ? allocator.markCaptureBegin(device) : allocator.markCaptureEnd(device);
}

class TorchPool final : public AllocationPool {
 public:
  explicit TorchPool(c10::Device device) : device_(device.index()), id_(new_pool_id()) {}
  // Each beginning counts as a use of the pool.
  ~TorchPool() override {
    for (int64_t i = 0; i < uses_; ++i) allocator().releasePool(device_, id_);
  }
  void begin(runtime::Stream stream) override {
    allocator().beginAllocateToPool(device_, id_, [stream](cudaStream_t s) { return s == stream; });
    ++uses_;
    tell(allocator(), device_, true);
  }
  void end() override {
    tell(allocator(), device_, false);
    allocator().endAllocateToPool(device_, id_);
  }

 private:
  const c10::DeviceIndex device_;
  const c10::MempoolId_t id_;
  int64_t uses_ = 0;
};

MakeAllocationPool other_pools = nullptr;

}  // namespace

std::unique_ptr<AllocationPool> make_allocation_pool(c10::Device device) {
  if (other_pools != nullptr) return other_pools(device);
  return std::make_unique<TorchPool>(device);
}

void set_allocation_pools(MakeAllocationPool make) { other_pools = make; }

}  // namespace cresset::bridge
