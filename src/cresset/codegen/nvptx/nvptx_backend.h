// The backend of CUDA devices: LLVM to PTX, nvJitLink to machine code, the driver to launch it. No torch, and nothing
// of CUDA to build it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/caching_backend.h"
#include "codegen/nvptx/assembler.h"
#include "runtime/device.h"

namespace cresset::codegen::nvptx {

struct NvptxOptions {
  std::shared_ptr<runtime::GpuDevice> device;     // nullptr: images are made, but none can be loaded
  std::shared_ptr<const Assembler> assembler;     // nullptr: nvJitLink, from these folders
  std::vector<std::string> library_folders = {};  // torch's libraries
  int chip = 0;                                   // 0: the device's
  bool from_disk_cache = true;
};

class NvptxBackend final : public CachingBackend {
 public:
  static NvptxBackend& get();
  void configure(NvptxOptions options);
  // Whether configure() gave it a device.
  bool is_configured() const;
  // nullptr: it has none.
  const std::shared_ptr<runtime::GpuDevice>& device() const { return options_.device; }

  // The text of a kernel's variants, each a function `entry` + suffix(variant). Fallback: an operator has no code.
  static Result<std::string> ptx_of(const loop::Kernel& kernel, const std::string& entry, int chip);

 private:
  NvptxBackend();
  ~NvptxBackend() override;

  void set_up() override;
  std::string target() const override;
  bool may_use_disk() const override;
  std::shared_ptr<const Plan> plan(const loop::Kernel& kernel) override;
  runtime::LaunchPlan launch_plan(const loop::Kernel& kernel, const Plan& plan) override;
  void need_workers(size_t count) override;
  Result<std::string> make_image(const loop::Kernel& kernel, const Plan& plan, const std::string& entry,
                                 size_t worker) override;
  Result<std::shared_ptr<const CompiledKernel>> load(const runtime::KernelImage& image, KernelRecord record) override;

  struct GpuPlan;
  struct Compilers;  // LLVM's part
  NvptxOptions options_;
  int chip_ = 0;
  std::shared_ptr<const Assembler> assembler_;  // nullptr: the driver takes PTX
  const std::unique_ptr<Compilers> compilers_;
};

}  // namespace cresset::codegen::nvptx
