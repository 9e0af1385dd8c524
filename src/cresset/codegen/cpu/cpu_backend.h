// The CPU backend: LLVM code for the host machine, linked into this process.
#pragma once

#include <memory>
#include <string>

#include "codegen/caching_backend.h"
#include "codegen/cpu/symbol_resolver.h"

namespace cresset::codegen::cpu {

struct CpuOptions {
  SymbolResolver resolver = nullptr;  // nullptr: scalar libm, lane by lane
  int vector_bits = 0;                // 0: the host's widest
  bool from_disk_cache = true;
};

class CpuBackend final : public CachingBackend {
 public:
  static CpuBackend& get();
  void configure(CpuOptions options);

 private:
  CpuBackend();
  ~CpuBackend() override;

  void set_up() override;
  std::string target() const override;
  bool may_use_disk() const override;
  std::shared_ptr<const Plan> plan(const loop::Kernel& kernel) override;
  runtime::LaunchPlan launch_plan(const loop::Kernel& kernel, const Plan& plan) override;
  void need_workers(size_t count) override;
  Result<std::string> make_image(const loop::Kernel& kernel, const Plan& plan, const std::string& entry,
                                 size_t worker) override;
  Result<std::shared_ptr<const CompiledKernel>> load(const runtime::KernelImage& image, KernelRecord record) override;

  struct CpuPlan;
  struct Machine;  // state of LLVM
  CpuOptions options_;
  const std::unique_ptr<Machine> machine_;
};

}  // namespace cresset::codegen::cpu
