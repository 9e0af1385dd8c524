#include "simulated_gpu.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace cresset::gpu_simulator {
namespace {

using runtime::DeviceError;
using Clock = std::chrono::steady_clock;

// An H200's, so that kernels are launched in the shapes of a real GPU.
constexpr int kChip = 90, kMultiprocessors = 132, kThreadsOfMultiprocessor = 2048;
constexpr int64_t kSharedBytes = 227 * 1024, kL2Bytes = 60 << 20;
constexpr int kDriverVersion = 13000;
// Limits of launches on every chip.
constexpr int64_t kMostThreads = 1024, kMostGridY = 65535, kSharedBytesByDefault = 48 * 1024;

constexpr size_t kAlignment = 512;
constexpr int kGarbage = 0xa5;

class LlvmTextAssembler final : public codegen::nvptx::Assembler {
 public:
  Input input() const override { return Input::Llvm; }
  Result<std::string> assemble(const std::string& text, int) const override { return text; }
  std::string version() const override { return "simulator"; }
};

}  // namespace

std::shared_ptr<const codegen::nvptx::Assembler> make_simulator_assembler() {
  return std::make_shared<LlvmTextAssembler>();
}

SimulatedGpu::SimulatedGpu()
    : properties_{.name = "Simulated GPU",
                  .chip = kChip,
                  .multiprocessors = kMultiprocessors,
                  .threads_of_multiprocessor = kThreadsOfMultiprocessor,
                  .shared_bytes = kSharedBytes,
                  .l2_bytes = kL2Bytes,
                  .driver_version = kDriverVersion} {}

SimulatedGpu::~SimulatedGpu() = default;

Result<void*> SimulatedGpu::load(const runtime::KernelImage& image) {
  CRESSET_TRY(std::unique_ptr<SimtModule> module, SimtModule::parse(image.bytes));
  ++counters_.loads;
  std::lock_guard lock(mutex_);
  modules_.push_back(std::move(module));
  return static_cast<void*>(modules_.back().get());
}

runtime::DeviceFunction SimulatedGpu::function(void* loaded, const std::string& name) {
  return {const_cast<SimtFunction*>(static_cast<SimtModule*>(loaded)->function(name))};
}

void SimulatedGpu::allow_shared(runtime::DeviceFunction function, int64_t bytes) {
  if (bytes > properties_.shared_bytes) throw DeviceError("more shared memory allowed than the device has");
  std::lock_guard lock(mutex_);
  shared_limits_[function.handle] = bytes;
}

void SimulatedGpu::check_config(const void* function, const runtime::LaunchConfig& config) {
  const int64_t threads = int64_t{config.block[0]} * config.block[1] * config.block[2];
  if (threads < 1 || threads > kMostThreads) throw DeviceError(fmt::format("a launch of {} threads a block", threads));
  if (config.grid[0] < 1 || config.grid[1] < 1 || config.grid[0] > INT32_MAX || config.grid[1] > kMostGridY)
    throw DeviceError(fmt::format("a launch of {} x {} blocks", config.grid[0], config.grid[1]));
  if (config.grid[2] != 1 || config.block[2] != 1) throw DeviceError("a launch with three dimensions");
  std::lock_guard lock(mutex_);
  const auto raised = shared_limits_.find(function);
  if (config.shared_bytes > (raised == shared_limits_.end() ? kSharedBytesByDefault : raised->second))
    throw DeviceError(fmt::format("a launch with {} bytes of shared memory", config.shared_bytes));
}

void SimulatedGpu::launch(runtime::DeviceFunction function, const runtime::LaunchConfig& config,
                          std::span<const int64_t> parameters, runtime::Stream) {
  ++counters_.launches;
  if (launch_failure_.fails()) throw DeviceError("a launch failed, as the test wants");
  if (function.handle == nullptr) throw DeviceError("a launch of no function");
  check_config(function.handle, config);
  std::vector<int64_t> copy(parameters.begin(), parameters.end());
  constexpr uint32_t kSeed = 1;  // the order of threads is the same in each run of a test
  const auto& code = *static_cast<const SimtFunction*>(function.handle);
  if (const std::string wrong = run_grid(code, config, copy.data(), kSeed); !wrong.empty()) throw DeviceError(wrong);
}

void* SimulatedGpu::allocate(size_t bytes) {
  if (allocation_failure_.fails()) throw DeviceError("an allocation failed, as the test wants");
  const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* const out = std::aligned_alloc(kAlignment, std::max(size, kAlignment));
  if (out == nullptr) throw DeviceError("out of memory");
  std::memset(out, kGarbage, size);
  ++counters_.allocations;
  ++counters_.live_allocations;
  counters_.allocated_bytes += static_cast<int64_t>(bytes);
  return out;
}

void SimulatedGpu::free(void* memory) {
  if (memory == nullptr) return;
  --counters_.live_allocations;
  std::free(memory);
}

void SimulatedGpu::copy(void* to, const void* from, size_t bytes, runtime::Stream) {
  ++counters_.copies;
  counters_.copied_bytes += static_cast<int64_t>(bytes);
  std::memmove(to, from, bytes);
}

void SimulatedGpu::fill(void* to, uint8_t value, size_t bytes, runtime::Stream) {
  ++counters_.fills;
  counters_.filled_bytes += static_cast<int64_t>(bytes);
  std::memset(to, value, bytes);
}

void SimulatedGpu::synchronize(runtime::Stream) { ++counters_.synchronizations; }

// An event is the time of its last record.
runtime::Event SimulatedGpu::make_event() { return new Clock::time_point(); }
void SimulatedGpu::destroy(runtime::Event event) { delete static_cast<Clock::time_point*>(event); }
void SimulatedGpu::record(runtime::Event event, runtime::Stream) {
  *static_cast<Clock::time_point*>(event) = Clock::now();
}
double SimulatedGpu::milliseconds_between(runtime::Event begin, runtime::Event end) {
  const auto passed = *static_cast<Clock::time_point*>(end) - *static_cast<Clock::time_point*>(begin);
  return std::chrono::duration<double, std::milli>(passed).count();
}

}  // namespace cresset::gpu_simulator
