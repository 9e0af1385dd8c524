// A CUDA device by the driver alone. Calls work on the device's primary context, which is torch's too.
#pragma once

#include "runtime/cuda/driver.h"
#include "runtime/device.h"

namespace cresset::runtime::cuda {

class CudaDevice final : public GpuDevice {
 public:
  // Fallback: there is no device of this number.
  static Result<std::shared_ptr<CudaDevice>> open(std::shared_ptr<const Driver> driver, int ordinal);

  const DeviceProperties& properties() const override { return properties_; }
  Result<void*> load(const KernelImage& image) override;
  DeviceFunction function(void* loaded, const std::string& name) override;
  FunctionProperties properties_of(DeviceFunction function) override;
  void allow_shared(DeviceFunction function, int64_t bytes) override;
  void launch(DeviceFunction function, const LaunchConfig& config, std::span<const int64_t> parameters,
              Stream stream) override;
  void* allocate(size_t bytes) override;
  void free(void* memory) override;
  void* allocate_host(size_t bytes) override;
  void free_host(void* memory) override;
  void copy(void* to, const void* from, size_t bytes, Stream stream) override;
  void fill(void* to, uint8_t value, size_t bytes, Stream stream) override;
  void synchronize(Stream stream) override;
  Event make_event() override;
  void destroy(Event event) override;
  void record(Event event, Stream stream) override;
  bool is_done(Event event) override;
  double milliseconds_between(Event begin, Event end) override;
  Stream make_stream() override;
  bool is_recording(Stream stream) override;
  void begin_recording(Stream stream) override;
  GraphNode last_recorded(Stream stream) override;
  std::unique_ptr<LaunchGraph> end_recording(Stream stream) override;

 private:
  class Inside;

  explicit CudaDevice(std::shared_ptr<const Driver> driver) : driver_(std::move(driver)) {}

  std::shared_ptr<const Driver> driver_;
  int device_ = 0;
  void* context_ = nullptr;
  DeviceProperties properties_;
};

}  // namespace cresset::runtime::cuda
