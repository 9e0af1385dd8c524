// Runs kernels on a GPU.
#include <memory>

#include "codegen/nvptx/device_kernel.h"
#include "codegen/nvptx/nvptx_backend.h"
#include "gpu_device.h"
#include "kernel_harness.h"

namespace cresset::codegen::cpu {
namespace {

using nvptx::DeviceKernel;
using nvptx::Launch;
using nvptx::Numbers;
using nvptx::NvptxBackend;
using nvptx::Shape;
using nvptx::Variant;
using runtime::GpuDevice;

// The buffers of a test in the device's memory.
class DeviceMemory {
 public:
  DeviceMemory(GpuDevice& device, const Memory& host) : device_(device) {
    for (const std::vector<char>& bytes : host.bytes) {
      pointers.push_back(device.allocate(bytes.size()));
      device.copy(pointers.back(), bytes.data(), bytes.size(), nullptr);
    }
  }
  ~DeviceMemory() {
    for (void* p : pointers) device_.free(p);
  }
  void read_back(Memory& host) {
    for (size_t i = 0; i < pointers.size(); ++i)
      device_.copy(host.bytes[i].data(), pointers[i], host.bytes[i].size(), nullptr);
    device_.synchronize(nullptr);
  }
  std::vector<void*> pointers;

 private:
  GpuDevice& device_;
};

std::vector<Launch> launches_of(const DeviceKernel& kernel, const Numbers& numbers, Variant variant) {
  const nvptx::Machine small{.multiprocessors = 1, .most_threads = 2048};
  std::vector<Launch> out{launch_of(numbers, variant, kernel.machine_for(numbers))};
  if (numbers.shape() == Shape::Points) return out;
  const bool rows = numbers.shape() == Shape::Rows;
  out.push_back(launch_of(numbers, variant, small, rows ? 64 : 4, 1));
  constexpr int64_t kShort = 4096;  // few threads for a long row lose precision
  if (numbers.inner_chunks(variant) <= kShort) out.push_back(launch_of(numbers, variant, small, rows ? 4 : 2, 1));
  out.push_back(launch_of(numbers, variant, small, rows ? 256 : 8, 3));
  return out;
}

// Elements that are passed by value stay on the host.
void* given(const KernelBuilder& k, const DeviceMemory& memory, const Memory& host, size_t buffer) {
  return k.kernel.buffers[buffer].by_value ? host.pointers[buffer] : memory.pointers[buffer];
}

void run_variants(KernelBuilder& k, const DeviceKernel& kernel, const std::vector<int64_t>& symbols,
                  const Visit& visit) {
  const std::vector<int64_t> outputs = kernel.numbers(symbols.data());
  const Numbers numbers(outputs);
  for (int v = 0; v < nvptx::kVariants; ++v) {
    const auto variant = static_cast<Variant>(v);
    if (!numbers.has(variant)) continue;
    for (const Launch& launch : launches_of(kernel, numbers, variant)) {
      Memory got(k);
      DeviceMemory memory(kernel.device(), got);
      runtime::GpuLaunches launches;
      std::vector<int64_t>& parameters = launches.parameters;
      std::vector<uint64_t> addresses;
      for (size_t i = 0; i < memory.pointers.size(); ++i) {
        addresses.push_back(reinterpret_cast<uint64_t>(memory.pointers[i]));
        parameters.push_back(reinterpret_cast<int64_t>(given(k, memory, got, i)));
      }
      if (!numbers.allows(variant, addresses)) continue;
      numbers.pass_values(parameters);
      parameters.insert(parameters.end(), symbols.begin(), symbols.end());
      for (const int64_t d : numbers.divisors()) parameters.push_back(static_cast<int64_t>(nvptx::magic_of(d)));
      parameters.resize(parameters.size() + 2);
      void* const workspace = kernel.device().allocate(static_cast<size_t>(launch.workspace_bytes));
      kernel.prepare(launch, numbers[nvptx::kStages], workspace, launches);
      kernel.device().launch_all(launches, nullptr);
      memory.read_back(got);
      kernel.device().free(workspace);
      visit(got, "gpu" + std::string(suffix(variant)) + " grid " + std::to_string(launch.grid_x) + " x " +
                     std::to_string(launch.grid_y) + " block " + std::to_string(launch.block_x) + " x " +
                     std::to_string(launch.block_y));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// As a program launches it.
void run_bound(KernelBuilder& k, const DeviceKernel& kernel, const std::vector<int64_t>& symbols, const Visit& visit) {
  Memory got(k);
  DeviceMemory memory(kernel.device(), got);
  std::vector<std::byte> block(runtime::ParamBlock::size(memory.pointers.size(), symbols.size()) + 8);
  const runtime::ParamBlock params{block.data(), static_cast<uint32_t>(memory.pointers.size()),
                                   static_cast<uint32_t>(symbols.size())};
  for (size_t i = 0; i < symbols.size(); ++i) *params.symbol(i) = symbols[i];
  const auto bound = kernel.bind(params);
  for (size_t i = 0; i < memory.pointers.size(); ++i) *params.buffer(i) = given(k, memory, got, i);
  const runtime::LaunchContext context;
  void* const workspace = kernel.device().allocate(static_cast<size_t>(bound->scratch_bytes(context)));
  bound->launch(context, workspace);
  memory.read_back(got);
  kernel.device().free(workspace);
  visit(got, "gpu, as bound");
}

void run_on_device(KernelBuilder& k, const std::vector<int64_t>& symbols, const Visit& visit) {
  const auto device = test_device();
  if (!device.ok()) GTEST_SKIP() << describe(device.fallback());
  if (!NvptxBackend::ptx_of(k.kernel, "kernel", (*device)->properties().chip).ok()) return;  // lgamma of f64
  const auto compiled = NvptxBackend::get().compile({&k.kernel});
  ASSERT_TRUE(compiled.ok()) << describe(compiled.fallback());
  const DeviceKernel& kernel = DeviceKernel::from(*(*compiled)[0]);
  run_variants(k, kernel, symbols, visit);
  if (!testing::Test::HasFatalFailure()) run_bound(k, kernel, symbols, visit);
}

}  // namespace

const std::vector<KernelRunner> kKernelRunners = {&run_on_device};

}  // namespace cresset::codegen::cpu
