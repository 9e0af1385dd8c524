#include "codegen/cpu/cpu_backend.h"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>

#include "base/options.h"
#include "codegen/code_version.h"
#include "codegen/cpu/emit_kernel.h"
#include "codegen/cpu/host_kernel.h"
#include "codegen/cpu/jit.h"
#include "codegen/cpu/target.h"

namespace cresset::codegen::cpu {

struct CpuBackend::CpuPlan final : Plan {
  Schedule schedule;
};

struct CpuBackend::Machine {
  Target target;
  std::unique_ptr<Jit> jit;
  std::vector<std::unique_ptr<ObjectCompiler>> compilers;  // a compiler for each worker
};

CpuBackend::CpuBackend()
    : CachingBackend({DeviceKind::Cpu, runtime::KernelImage::Format::Object}), machine_(std::make_unique<Machine>()) {}
CpuBackend::~CpuBackend() = default;

CpuBackend& CpuBackend::get() {
  static CpuBackend* backend = new CpuBackend();  // never destroyed: code may run until the process ends
  return *backend;
}

void CpuBackend::configure(CpuOptions options) {
  std::lock_guard lock(mutex_);
  options_ = options;
  machine_->target = {};
}

void CpuBackend::set_up() {
  if (!machine_->target.triple.empty()) return;
  machine_->target =
      host_target(options_.vector_bits != 0 ? options_.vector_bits : static_cast<int>(option_int(Option::VECTOR_BITS)));
  machine_->compilers.clear();  // created on demand: a process which finds all its kernels on disk needs none
  if (machine_->jit == nullptr) machine_->jit = std::make_unique<Jit>(machine_->target.triple);
  machine_->jit->set_resolver(options_.resolver);
}

std::string CpuBackend::target() const {
  return fmt::format("version {} llvm {} cpu {} features {} bits {} library {}", kCodeVersion, LLVM_VERSION_STRING,
                     machine_->target.cpu, machine_->target.features, machine_->target.vector_bits,
                     options_.resolver != nullptr);
}

bool CpuBackend::may_use_disk() const { return options_.from_disk_cache && !option_flag(Option::NO_DISK_CACHE); }

std::shared_ptr<const CachingBackend::Plan> CpuBackend::plan(const loop::Kernel& kernel) {
  auto out = std::make_shared<CpuPlan>();
  out->schedule = make_schedule(kernel, machine_->target.vector_bits);
  out->text = schedule_text(kernel, out->schedule);
  out->description = describe(kernel, out->schedule);
  return out;
}

runtime::LaunchPlan CpuBackend::launch_plan(const loop::Kernel& kernel, const Plan& plan) {
  const Schedule& schedule = static_cast<const CpuPlan&>(plan).schedule;
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
  if (machine_->compilers.size() < count) machine_->compilers.resize(count);
}

Result<std::string> CpuBackend::make_image(const loop::Kernel& kernel, const Plan& plan, const std::string& entry,
                                           size_t worker) {
  for (const loop::Scalar& scalar : kernel.scalars)
    if (scalar.op == loop::Op::Scan) return Fallback{FallbackReason::CodegenFailed, "a scan has no CPU code", ""};
  for (const loop::Store& store : kernel.stores)
    if (store.combine) return Fallback{FallbackReason::CodegenFailed, "a store with a combine has no CPU code", ""};
  if (machine_->compilers[worker] == nullptr)
    machine_->compilers[worker] = std::make_unique<ObjectCompiler>(machine_->target);
  ObjectCompiler& compiler = *machine_->compilers[worker];
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  compiler.prepare(module);
  emit_kernel(kernel, static_cast<const CpuPlan&>(plan).schedule,
              {options_.resolver, machine_->target.vector_bits, machine_->target.has_fma, machine_->target.has_bf16,
               machine_->target.has_scalef},
              entry, module);
  return compiler.compile(module);
}

Result<std::shared_ptr<const CompiledKernel>> CpuBackend::load(const runtime::KernelImage& image, KernelRecord record) {
  if (record.plan.numbers.output_count() != kNumbers)
    return Fallback{FallbackReason::CodegenFailed, "a kernel from disk has another launch plan", ""};
  CRESSET_TRY(void* const fn, machine_->jit->load(image));
  return std::shared_ptr<const CompiledKernel>(
      std::make_shared<HostKernel>(reinterpret_cast<KernelFn>(fn), std::move(record)));
}

}  // namespace cresset::codegen::cpu
