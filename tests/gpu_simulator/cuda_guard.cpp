#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <atomic>
#include <chrono>

#include "cuda_devices.h"
#include "cuda_memory.h"

namespace cresset::gpu_simulator {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;
using Clock = std::chrono::steady_clock;

thread_local DeviceIndex this_device = 0;
thread_local std::array<c10::StreamId, kDevices> this_stream{};

DeviceIndex index_of(Device device) { return device.has_index() ? device.index() : this_device; }

// An event is the time of its last record: all work is done when its call returns.
class SimulatedGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kCUDA; }
  Device exchangeDevice(Device device) const override {
    const Device old = getDevice();
    setDevice(device);
    return old;
  }
  Device getDevice() const override { return {c10::kCUDA, this_device}; }
  void setDevice(Device device) const override {
    TORCH_CHECK(index_of(device) < kDevices, "CUDA error: invalid device ordinal");
    this_device = index_of(device);
  }
  void uncheckedSetDevice(Device device) const noexcept override { this_device = index_of(device); }
  DeviceIndex deviceCount() const noexcept override { return kDevices; }
  c10::DeviceCapability getDeviceCapability(Device) const override { return {}; }
  void synchronizeDevice(const DeviceIndex) const override {}

  Stream getStream(Device device) const override {
    return stream(index_of(device), this_stream.at(static_cast<size_t>(index_of(device))));
  }
  Stream getDefaultStream(Device device) const override { return stream(index_of(device), 0); }
  Stream getStreamFromGlobalPool(Device device, bool) const override { return getNewStream(device, 0); }
  Stream getNewStream(Device device, int) const override {
    static std::atomic<c10::StreamId> count = 0;
    return stream(index_of(device), ++count);
  }
  Stream exchangeStream(Stream stream) const override {
    const Stream old = getStream(stream.device());
    this_stream.at(static_cast<size_t>(stream.device_index())) = stream.id();
    return old;
  }
  void* getStreamNativeHandle(const Stream stream) const override { return reinterpret_cast<void*>(stream.id()); }
  bool queryStream(const Stream&) const override { return true; }
  void synchronizeStream(const Stream&) const override {}

  void record(void** event, const Stream&, const DeviceIndex, const c10::EventFlag) const override {
    if (*event == nullptr) *event = new Clock::time_point();
    *static_cast<Clock::time_point*>(*event) = Clock::now();
  }
  void destroyEvent(void* event, const DeviceIndex) const noexcept override {
    delete static_cast<Clock::time_point*>(event);
  }
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
  double elapsedTime(void* begin, void* end, const DeviceIndex) const override {
    const auto passed = *static_cast<Clock::time_point*>(end) - *static_cast<Clock::time_point*>(begin);
    return std::chrono::duration<double, std::milli>(passed).count();
  }

 private:
  static Stream stream(DeviceIndex device, c10::StreamId id) {
    return Stream(Stream::UNSAFE, Device(c10::kCUDA, device), id);
  }
};

}  // namespace

DeviceIndex current_device() { return this_device; }

void* current_stream(DeviceIndex device) {
  return reinterpret_cast<void*>(this_stream.at(static_cast<size_t>(device)));
}

void register_guard() { static const c10::impl::DeviceGuardImplRegistrar registrar(c10::kCUDA, new SimulatedGuard()); }

}  // namespace cresset::gpu_simulator
