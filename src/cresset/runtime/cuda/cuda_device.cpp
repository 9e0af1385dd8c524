#include "runtime/cuda/cuda_device.h"

namespace cresset::runtime::cuda {

// Makes the device's primary context this thread's current one for a scope. The runtime's current device, which the
// user may have set, goes with the current context: it must be the same afterwards. A thread without a context keeps
// this one.
class CudaDevice::Inside {
 public:
  explicit Inside(CudaDevice& device) : driver_(*device.driver_) {
    driver_.check(driver_.current_context(&before_), "cuCtxGetCurrent");
    changed_ = before_ != device.context_;
    if (changed_) driver_.check(driver_.set_current_context(device.context_), "cuCtxSetCurrent");
  }
  ~Inside() {
    if (changed_ && before_ != nullptr) driver_.set_current_context(before_);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  const Driver& driver_;
  void* before_ = nullptr;
  bool changed_ = false;
};

Result<std::shared_ptr<CudaDevice>> CudaDevice::open(std::shared_ptr<const Driver> driver, int ordinal) {
  std::shared_ptr<CudaDevice> out(new CudaDevice(std::move(driver)));
  const Driver& d = *out->driver_;
  if (d.device(&out->device_, ordinal) != 0)
    return Fallback{FallbackReason::CodegenFailed, "opening CUDA device " + std::to_string(ordinal), ""};
  const auto attribute = [&](int which) {
    int value = 0;
    d.check(d.device_attribute(&value, which, out->device_), "cuDeviceGetAttribute");
    return value;
  };
  char name[256] = {};
  d.check(d.device_name(name, sizeof(name) - 1, out->device_), "cuDeviceGetName");
  DeviceProperties& p = out->properties_;
  p.name = name;
  p.chip = attribute(kMajor) * 10 + attribute(kMinor);
  p.multiprocessors = attribute(kMultiprocessors);
  p.threads_of_multiprocessor = attribute(kThreadsOfMultiprocessor);
  p.shared_bytes = attribute(kSharedOfBlockOptin);
  p.l2_bytes = attribute(kL2Bytes);
  d.check(d.driver_version(&p.driver_version), "cuDriverGetVersion");
  d.check(d.retain_primary_context(&out->context_, out->device_), "cuDevicePrimaryCtxRetain");
  const Inside inside(*out);
  return out;
}

Result<void*> CudaDevice::load(const KernelImage& image) {
  const Inside inside(*this);
  void* library = nullptr;
  const int status = driver_->load_library(&library, image.bytes.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (status == 0) return library;
  const char* name = nullptr;
  if (driver_->error_name(status, &name) != 0 || name == nullptr) name = "unknown error";
  return Fallback{FallbackReason::CodegenFailed, std::string("loading a kernel: ") + name, ""};
}

DeviceFunction CudaDevice::function(void* loaded, const std::string& name) {
  DeviceFunction out;
  if (driver_->library_kernel(&out.handle, loaded, name.c_str()) != 0) out.handle = nullptr;
  return out;
}

FunctionProperties CudaDevice::properties_of(DeviceFunction function) {
  const auto attribute = [&](int which) {
    int value = 0;
    driver_->check(driver_->kernel_attribute(&value, which, function.handle, device_), "cuKernelGetAttribute");
    return value;
  };
  return {attribute(kRegisters), attribute(kSharedBytes), attribute(kLocalBytes)};
}

// On every device: kernels are loaded once for all of them.
void CudaDevice::allow_shared(DeviceFunction function, int64_t bytes) {
  int count = 0;
  driver_->check(driver_->device_count(&count), "cuDeviceGetCount");
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0;
    driver_->check(driver_->device(&device, ordinal), "cuDeviceGet");
    const int status =
        driver_->set_kernel_attribute(kMostDynamicSharedBytes, static_cast<int>(bytes), function.handle, device);
    if (device == device_) driver_->check(status, "cuKernelSetAttribute");
  }
}

void CudaDevice::launch(DeviceFunction function, const LaunchConfig& config, std::span<const int64_t> parameters,
                        Stream stream) {
  PackedParameters packed(parameters);
  driver_->check(
      driver_->launch_kernel(function.handle, config.grid[0], config.grid[1], config.grid[2], config.block[0],
                             config.block[1], config.block[2], config.shared_bytes, stream, nullptr, packed.extra()),
      "cuLaunchKernel");
}

void* CudaDevice::allocate(size_t bytes) {
  const Inside inside(*this);
  uint64_t address = 0;
  driver_->check(driver_->allocate(&address, bytes == 0 ? 1 : bytes), "cuMemAlloc");
  return reinterpret_cast<void*>(address);
}

void CudaDevice::free(void* memory) { driver_->check(driver_->free(reinterpret_cast<uint64_t>(memory)), "cuMemFree"); }

void* CudaDevice::allocate_host(size_t bytes) {
  const Inside inside(*this);
  void* memory = nullptr;
  driver_->check(driver_->allocate_host(&memory, bytes == 0 ? 1 : bytes, kPortable | kDeviceMapped), "cuMemHostAlloc");
  return memory;
}

void CudaDevice::free_host(void* memory) { driver_->check(driver_->free_host(memory), "cuMemFreeHost"); }

void CudaDevice::copy(void* to, const void* from, size_t bytes, Stream stream) {
  if (bytes == 0) return;
  driver_->check(driver_->copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes, stream),
                 "cuMemcpyAsync");
}

void CudaDevice::fill(void* to, uint8_t value, size_t bytes, Stream stream) {
  if (bytes == 0) return;
  driver_->check(driver_->fill(reinterpret_cast<uint64_t>(to), value, bytes, stream), "cuMemsetD8Async");
}

void CudaDevice::synchronize(Stream stream) {
  driver_->check(driver_->synchronize_stream(stream), "cuStreamSynchronize");
}

Event CudaDevice::make_event() {
  void* event = nullptr;
  driver_->check(driver_->create_event(&event, 0), "cuEventCreate");
  return event;
}

void CudaDevice::destroy(Event event) { driver_->check(driver_->destroy_event(event), "cuEventDestroy"); }

void CudaDevice::record(Event event, Stream stream) {
  driver_->check(driver_->record_event(event, stream), "cuEventRecord");
}

bool CudaDevice::is_done(Event event) {
  const int status = driver_->query_event(event);
  if (status == kNotReady) return false;
  driver_->check(status, "cuEventQuery");
  return true;
}

double CudaDevice::milliseconds_between(Event begin, Event end) {
  float out = 0;
  driver_->check(driver_->synchronize_event(end), "cuEventSynchronize");
  driver_->check(driver_->elapsed_time(&out, begin, end), "cuEventElapsedTime");
  return static_cast<double>(out);
}

}  // namespace cresset::runtime::cuda
