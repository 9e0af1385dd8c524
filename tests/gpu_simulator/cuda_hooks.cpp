#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <new>

#include "cuda_devices.h"
#include "cuda_memory.h"

namespace cresset::gpu_simulator {
namespace {

// Without members, the hooks keep this flag apart.
std::atomic<bool> has_cudnn = false;

// What torch's core asks of the CUDA library.
class SimulatedHooks final : public at::CUDAHooksInterface {
 public:
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool compiledWithCuDNN() const override { return has_cudnn; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return default_generator(device < 0 ? gpu_simulator::current_device() : device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return new_generator(device < 0 ? gpu_simulator::current_device() : device);
  }
  at::Device getDeviceFromPtr(void*) const override { return {at::kCUDA, gpu_simulator::current_device()}; }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  at::Allocator* getCUDADeviceAllocator() const override { return &cuda_allocator(); }
  c10::DeviceIndex current_device() const override { return gpu_simulator::current_device(); }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  int getNumGPUs() const override { return kDevices; }
  c10::DeviceIndex getCurrentDevice() const override { return gpu_simulator::current_device(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { exchangeDevice(device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return c10::impl::getDeviceGuardImpl(at::kCUDA)->exchangeDevice({at::kCUDA, device}).index();
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? gpu_simulator::current_device() : exchangeDevice(device);
  }
  std::string showConfig() const override { return "simulated CUDA devices"; }
  void deviceSynchronize(c10::DeviceIndex) const override {}
};

// Torch makes its hooks at the first question about CUDA, which `import torch` asks already, and keeps them for good.
// So the hooks of a build without CUDA, which have no members, become the simulator's where they are.
void replace_hooks() {
  static_assert(sizeof(SimulatedHooks) == sizeof(at::CUDAHooksInterface));
  new (const_cast<at::CUDAHooksInterface*>(&at::detail::getCUDAHooks())) SimulatedHooks();
  TORCH_CHECK(at::globalContext().hasCUDA(), "torch does not see the simulated CUDA devices");
}

}  // namespace

void set_cudnn(bool present) { has_cudnn = present; }

void register_guard();

void register_devices() {
  TORCH_CHECK(!at::globalContext().hasCUDA(), "torch has CUDA devices already");
  register_guard();
  c10::SetAllocator(c10::kCUDA, &cuda_allocator());
  replace_hooks();
}

}  // namespace cresset::gpu_simulator
