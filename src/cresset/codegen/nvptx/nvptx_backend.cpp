#include "codegen/nvptx/nvptx_backend.h"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>

#include "base/options.h"
#include "codegen/code_version.h"
#include "codegen/nvptx/device_kernel.h"
#include "codegen/nvptx/emit_kernel.h"
#include "codegen/nvptx/target.h"
#include "runtime/index_reports.h"

namespace cresset::codegen::nvptx {
namespace {

static_assert(loop::kNothingReported == runtime::IndexReports::kNothing);

Result<std::string> text_of(PtxCompiler& compiler, const loop::Kernel& kernel, const Schedule& schedule,
                            const std::string& entry, Assembler::Input form = Assembler::Input::Ptx) {
  if (const char* op = unsupported(kernel, schedule))
    return Fallback{FallbackReason::CodegenFailed, fmt::format("no GPU code is made for {} of this dtype", op), ""};
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  compiler.prepare(module);
  for (int v = 0; v < kVariants; ++v) {
    const auto variant = static_cast<Variant>(v);
    if (schedule.has(variant)) emit_kernel(kernel, schedule, variant, entry + std::string(suffix(variant)), module);
  }
  if (form == Assembler::Input::Ptx) return compiler.compile(module);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

int supported_chip(int chip) { return std::clamp(chip, kOldestChip, kNewestChip); }

}  // namespace

struct NvptxBackend::GpuPlan final : Plan {
  Schedule schedule;
};

struct NvptxBackend::Compilers {
  std::vector<std::unique_ptr<PtxCompiler>> of_worker;
};

NvptxBackend::NvptxBackend()
    : CachingBackend({DeviceKind::Cuda, runtime::KernelImage::Format::Cubin}),
      compilers_(std::make_unique<Compilers>()) {}
NvptxBackend::~NvptxBackend() = default;

NvptxBackend& NvptxBackend::get() {
  static NvptxBackend* backend = new NvptxBackend();  // never destroyed: code may run until the process ends
  return *backend;
}

void NvptxBackend::configure(NvptxOptions options) {
  std::lock_guard lock(mutex_);
  options_ = std::move(options);
  chip_ = 0;
}

bool NvptxBackend::is_configured() const {
  std::lock_guard lock(mutex_);
  return options_.device != nullptr;
}

// Without nvJitLink the driver assembles, slowly. So it does for chips that came after LLVM's.
void NvptxBackend::set_up() {
  if (chip_ != 0) return;
  chip_ = options_.chip != 0 ? options_.chip : options_.device != nullptr ? options_.device->properties().chip : 0;
  if (chip_ == 0) chip_ = kNewestChip;
  compilers_->of_worker.clear();
  assembler_ = options_.assembler;
  if (assembler_ != nullptr || chip_ > kNewestChip) return;
  if (auto found = open_nvjitlink(options_.library_folders); found.ok()) assembler_ = *found;
}

std::string NvptxBackend::target() const {
  return fmt::format("version {} llvm {} sm_{} assembler {}", kCodeVersion, LLVM_VERSION_STRING, chip_,
                     assembler_ == nullptr ? "driver" : assembler_->version());
}

bool NvptxBackend::may_use_disk() const { return options_.from_disk_cache && !option_flag(Option::NO_DISK_CACHE); }

std::shared_ptr<const CachingBackend::Plan> NvptxBackend::plan(const loop::Kernel& kernel) {
  auto out = std::make_shared<GpuPlan>();
  out->schedule = make_schedule(kernel);
  out->text = schedule_text(kernel, out->schedule);
  out->description = describe(kernel, out->schedule);
  return out;
}

runtime::LaunchPlan NvptxBackend::launch_plan(const loop::Kernel& kernel, const Plan& plan) {
  const Schedule& schedule = static_cast<const GpuPlan&>(plan).schedule;
  std::unordered_map<VarId, uint32_t> slots;
  const std::vector<VarId> symbols = kernel.size_symbols();
  for (size_t i = 0; i < symbols.size(); ++i) slots[symbols[i]] = static_cast<uint32_t>(i);
  return {sym::SizeProgram::compile(kernel.env().pool(), schedule.numbers, slots)};
}

void NvptxBackend::need_workers(size_t count) {
  if (compilers_->of_worker.size() < count) compilers_->of_worker.resize(count);
}

Result<std::string> NvptxBackend::make_image(const loop::Kernel& kernel, const Plan& plan, const std::string& entry,
                                             size_t worker) {
  std::unique_ptr<PtxCompiler>& compiler = compilers_->of_worker[worker];
  if (compiler == nullptr) compiler = std::make_unique<PtxCompiler>(supported_chip(chip_));
  const Assembler::Input form = assembler_ == nullptr ? Assembler::Input::Ptx : assembler_->input();
  CRESSET_TRY(std::string text, text_of(*compiler, kernel, static_cast<const GpuPlan&>(plan).schedule, entry, form));
  return assembler_ == nullptr ? Result<std::string>(std::move(text)) : assembler_->assemble(text, chip_);
}

Result<std::shared_ptr<const CompiledKernel>> NvptxBackend::load(const runtime::KernelImage& image,
                                                                 KernelRecord record) {
  if (options_.device == nullptr)
    return Fallback{FallbackReason::CodegenFailed, "loading a kernel into a GPU: there is none", ""};
  CRESSET_TRY(std::shared_ptr<const DeviceKernel> kernel,
              DeviceKernel::load(options_.device, image, std::move(record)));
  return std::shared_ptr<const CompiledKernel>(std::move(kernel));
}

Result<std::string> NvptxBackend::ptx_of(const loop::Kernel& kernel, const std::string& entry, int chip) {
  PtxCompiler compiler(supported_chip(chip));
  return text_of(compiler, kernel, make_schedule(kernel), entry);
}

}  // namespace cresset::codegen::nvptx
