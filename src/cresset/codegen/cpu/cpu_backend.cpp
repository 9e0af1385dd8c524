#include "codegen/cpu/cpu_backend.h"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>

#include "base/options.h"
#include "codegen/code_version.h"
#include "codegen/cpu/emit_kernel.h"
#include "codegen/cpu/host_kernel.h"

namespace cresset::codegen::cpu {
struct CpuBackend::CpuPlan final : Plan {
  Schedule schedule;
};

const Schedule& CpuBackend::schedule_of(const Plan& plan) { return static_cast<const CpuPlan&>(plan).schedule; }

CpuBackend& CpuBackend::get() {
  static CpuBackend* backend = new CpuBackend();  // never destroyed: code may run until the process ends
  return *backend;
}

void CpuBackend::configure(CpuOptions options) {
  std::lock_guard lock(mutex_);
  options_ = options;
  target_ = {};
}

void CpuBackend::set_up() {
  if (!target_.triple.empty()) return;
  target_ = host_target(options_.vector_bits != 0 ? options_.vector_bits
                                                  : static_cast<int>(option_int(Option::VECTOR_BITS)));
  compilers_.clear();  // made when code is: a process that finds all its kernels on disk needs none
  if (jit_ == nullptr) jit_ = std::make_unique<Jit>(target_.triple);
  jit_->set_resolver(options_.resolver);
}

std::string CpuBackend::target() const {
  return fmt::format("version {} llvm {} cpu {} features {} bits {} library {}", kCodeVersion, LLVM_VERSION_STRING,
                     target_.cpu, target_.features, target_.vector_bits, options_.resolver != nullptr);
}

bool CpuBackend::may_use_disk() const { return options_.from_disk_cache && !option_flag(Option::NO_DISK_CACHE); }

std::shared_ptr<const CachingBackend::Plan> CpuBackend::plan(const loop::Kernel& kernel) {
  auto out = std::make_shared<CpuPlan>();
  out->schedule = make_schedule(kernel, target_.vector_bits);
  out->text = schedule_text(kernel, out->schedule);
  out->description = describe(kernel, out->schedule);
  return out;
}

runtime::LaunchPlan CpuBackend::launch_plan(const loop::Kernel& kernel, const Plan& plan) {
  const Schedule& schedule = schedule_of(plan);
  std::unordered_map<VarId, uint32_t> slots;
  const std::vector<VarId> symbols = kernel.size_symbols();
  for (size_t i = 0; i < symbols.size(); ++i) slots[symbols[i]] = static_cast<uint32_t>(i);
  ExprId outputs[kNumbers];
  outputs[kWorkItems] = schedule.work_items;
  outputs[kItemCost] = schedule.item_cost;
  outputs[kScratchBytes] = schedule.scratch_bytes;
  return {sym::SizeProgram::compile(kernel.env().pool(), outputs, slots)};
}

void CpuBackend::need_workers(size_t count) {
  if (compilers_.size() < count) compilers_.resize(count);
}

std::string CpuBackend::make_image(const loop::Kernel& kernel, const Plan& plan, const std::string& entry,
                                   size_t worker) {
  if (compilers_[worker] == nullptr) compilers_[worker] = std::make_unique<ObjectCompiler>(target_);
  ObjectCompiler& compiler = *compilers_[worker];
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  compiler.prepare(module);
  emit_kernel(kernel, schedule_of(plan),
              {options_.resolver, target_.vector_bits, target_.has_fma, target_.has_bf16, target_.has_scalef}, entry,
              module);
  return compiler.compile(module);
}

Result<std::shared_ptr<const CompiledKernel>> CpuBackend::load(const runtime::KernelImage& image,
                                                               KernelRecord record) {
  if (record.plan.numbers.output_count() != kNumbers)
    return Fallback{FallbackReason::CodegenFailed, "a kernel from disk has another launch plan", ""};
  CRESSET_TRY(void* const fn, jit_->load(image));
  return std::shared_ptr<const CompiledKernel>(
      std::make_shared<HostKernel>(reinterpret_cast<KernelFn>(fn), std::move(record)));
}

}  // namespace cresset::codegen::cpu
