// A kernel in the GPU, and its launches.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "codegen/nvptx/launch.h"
#include "runtime/device.h"

namespace cresset::codegen::nvptx {

class DeviceKernel final : public runtime::CompiledKernel {
 public:
  // Fallback: the device does not take the image, or it lacks a variant.
  static Result<std::shared_ptr<const DeviceKernel>> load(std::shared_ptr<runtime::GpuDevice> device,
                                                          const runtime::KernelImage& image,
                                                          runtime::KernelRecord record);
  // The kernel as what it is, of the GPU's backend.
  static const DeviceKernel& from(const runtime::CompiledKernel& kernel) {
    return static_cast<const DeviceKernel&>(kernel);
  }

  std::unique_ptr<runtime::BoundKernel> bind(runtime::ParamBlock params) const override;

  std::vector<int64_t> numbers(const int64_t* symbols) const;
  // The registers of variants that may split rows are known, so that their blocks fit.
  Machine machine_for(const Numbers& numbers) const;
  runtime::GpuDevice& device() const { return *device_; }
  runtime::FunctionProperties properties_of(Variant variant) const;
  // The launches; several where blocks share outer points. `out.parameters` are as emit_kernel.h says, the last two of
  // them free.
  void prepare(const Launch& launch, int64_t passes, void* workspace, runtime::GpuLaunches& out) const;

 private:
  DeviceKernel(std::shared_ptr<runtime::GpuDevice> device, runtime::KernelRecord record)
      : CompiledKernel(std::move(record)), device_(std::move(device)) {}

  void describe_machine();
  int registers_of(Variant variant) const;

  const std::shared_ptr<runtime::GpuDevice> device_;
  Machine machine_;
  mutable std::array<std::atomic<int>, kVariants> registers_{};  // 0: not asked yet
  std::array<runtime::DeviceFunction, kVariants> functions_{};
};

}  // namespace cresset::codegen::nvptx
