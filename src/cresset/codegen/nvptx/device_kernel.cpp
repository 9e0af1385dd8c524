#include "codegen/nvptx/device_kernel.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace cresset::codegen::nvptx {
namespace {

constexpr int64_t kStaticSharedBytes = 4096;  // that reductions of a block take at most

// Whether the image names the function. A driver that is asked for a function which an image lacks reports an error.
bool names(const runtime::KernelImage& image, const std::string& function) {
  const auto continues = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
  };
  for (size_t at = image.bytes.find(function); at != std::string::npos; at = image.bytes.find(function, at + 1)) {
    const size_t end = at + function.size();
    if (end == image.bytes.size() || !continues(image.bytes[end])) return true;
  }
  return false;
}

// Sizes are known; addresses come with each launch, and with them the variant.
class BoundDeviceKernel final : public runtime::BoundKernel {
 public:
  BoundDeviceKernel(const DeviceKernel& kernel, runtime::ParamBlock params)
      : kernel_(kernel),
        params_(params),
        outputs_(kernel.numbers(params.symbol(0))),
        numbers_(outputs_),
        machine_(kernel.machine_for(numbers_)) {
    given_ = runtime::ParamBlock::size(params.buffers, params.symbols) / sizeof(int64_t);
    std::vector<int64_t>& parameters = launches_.parameters;
    parameters.resize(given_);
    for (const int64_t divisor : numbers_.divisors()) parameters.push_back(static_cast<int64_t>(magic_of(divisor)));
    parameters.resize(parameters.size() + 2);
    for (int v = 0; v < kVariants; ++v) {
      const auto variant = static_cast<Variant>(v);
      if (numbers_.has(variant))
        workspace_ = std::max(workspace_, launch_of(numbers_, variant, machine_).workspace_bytes);
    }
  }

  int64_t scratch_bytes(const runtime::LaunchContext&) const override { return workspace_; }

  void launch(const runtime::LaunchContext& context, void* scratch) const override {
    kernel_.device().launch_all(prepare(scratch), context.stream);
  }
  runtime::GpuLaunches* gpu_launches(void* scratch) const override { return &prepare(scratch); }

 private:
  runtime::GpuLaunches& prepare(void* scratch) const {
    std::vector<int64_t>& parameters = launches_.parameters;
    std::memcpy(parameters.data(), params_.bytes, given_ * sizeof(int64_t));
    numbers_.pass_values(parameters);
    const std::span addresses(reinterpret_cast<const uint64_t*>(parameters.data()), params_.buffers);
    kernel_.prepare(choose_launch(numbers_, addresses, machine_), numbers_[kStages], scratch, launches_);
    return launches_;
  }

  const DeviceKernel& kernel_;
  const runtime::ParamBlock params_;
  const std::vector<int64_t> outputs_;
  const Numbers numbers_;
  const Machine machine_;
  size_t given_ = 0;  // parameters that the block holds
  int64_t workspace_ = 0;
  mutable runtime::GpuLaunches launches_;  // a bound kernel is one call's at a time
};

}  // namespace

Result<std::shared_ptr<const DeviceKernel>> DeviceKernel::load(std::shared_ptr<runtime::GpuDevice> device,
                                                               const runtime::KernelImage& image,
                                                               runtime::KernelRecord record) {
  const size_t outputs = record.plan.numbers.output_count();
  if (outputs < kFirstFree)
    return Fallback{FallbackReason::CodegenFailed, "a kernel from disk has another launch plan", ""};
  CRESSET_TRY(void* const loaded, device->load(image));
  std::shared_ptr<DeviceKernel> out(new DeviceKernel(std::move(device), std::move(record)));
  bool any = false;
  for (int v = 0; v < kVariants; ++v) {
    const std::string name = image.entry + std::string(suffix(static_cast<Variant>(v)));
    if (!names(image, name)) continue;
    out->functions_[static_cast<size_t>(v)] = out->device_->function(loaded, name);
    any |= out->functions_[static_cast<size_t>(v)].handle != nullptr;
  }
  out->describe_machine();
  const runtime::DeviceFunction shared = out->functions_[static_cast<size_t>(Variant::Shared)];
  if (shared.handle != nullptr) out->device_->allow_shared(shared, out->machine_.shared_bytes);
  if (!any) return Fallback{FallbackReason::CodegenFailed, "an image holds none of the kernel's functions", ""};
  return std::shared_ptr<const DeviceKernel>(std::move(out));
}

std::vector<int64_t> DeviceKernel::numbers(const int64_t* symbols) const {
  std::vector<int64_t> out(record().plan.numbers.output_count());
  record().plan.numbers.run(symbols, out.data());
  return out;
}

void DeviceKernel::describe_machine() {
  const runtime::DeviceProperties& p = device_->properties();
  machine_.multiprocessors = p.multiprocessors;
  machine_.most_threads = p.threads_of_multiprocessor;
  machine_.shared_bytes = std::min(kMostSharedBytes, p.shared_bytes - kStaticSharedBytes);
}

Machine DeviceKernel::machine_for(const Numbers& numbers) const {
  Machine out = machine_;
  const int64_t threads = out.multiprocessors * out.most_threads;
  for (int v = 0; v < kVariants; ++v) {
    const auto variant = static_cast<Variant>(v);
    const bool splits = variant != Variant::Kept && variant != Variant::Shared && numbers[kMaySplit] != 0;
    if (splits && numbers.has(variant) && numbers.outer_chunks(variant) <= threads)
      out.registers[static_cast<size_t>(v)] = registers_of(variant);
  }
  return out;
}

// The driver is asked once: every vector of sizes has launches of its own.
int DeviceKernel::registers_of(Variant variant) const {
  std::atomic<int>& known = registers_[static_cast<size_t>(variant)];
  if (known.load() == 0) known.store(properties_of(variant).registers);
  return known.load();
}

runtime::FunctionProperties DeviceKernel::properties_of(Variant variant) const {
  const runtime::DeviceFunction function = functions_[static_cast<size_t>(variant)];
  return function.handle == nullptr ? runtime::FunctionProperties{} : device_->properties_of(function);
}

std::unique_ptr<runtime::BoundKernel> DeviceKernel::bind(runtime::ParamBlock params) const {
  return std::make_unique<BoundDeviceKernel>(*this, params);
}

void DeviceKernel::prepare(const Launch& launch, int64_t passes, void* workspace, runtime::GpuLaunches& out) const {
  out.last.clear();
  if (launch.nothing()) return;
  out.function = functions_[static_cast<size_t>(launch.variant)];
  CRESSET_CHECK(out.function.handle != nullptr, "a launch of a variant that the image lacks");
  out.config = {.grid = {launch.grid_x, launch.grid_y, 1},
                .block = {launch.block_x, launch.block_y, 1},
                .shared_bytes = launch.shared_bytes};
  out.parameters[out.parameters.size() - 2] = reinterpret_cast<int64_t>(workspace);
  for (int64_t pass = 0; pass <= (launch.splits > 1 ? passes : 0); ++pass)
    out.last.push_back(launch.splits | pass << 32);
}

}  // namespace cresset::codegen::nvptx
