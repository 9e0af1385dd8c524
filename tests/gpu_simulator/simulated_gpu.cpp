#include "simulated_gpu.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>

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
  // PTX is made too, and thrown away: a fault of LLVM's code for the GPU shows here.
  Result<std::string> assemble(const std::string& text, int chip) const override {
    CRESSET_TRY([[maybe_unused]] const std::string ptx, ptx_of(text, chip));
    return text;
  }
  std::string version() const override { return "simulator"; }
};

}  // namespace

std::shared_ptr<const codegen::nvptx::Assembler> make_simulator_assembler() {
  return std::make_shared<LlvmTextAssembler>();
}

namespace {

struct Kernel {
  runtime::DeviceFunction function;
  runtime::LaunchConfig config;
  std::vector<int64_t> parameters;
};
struct Node {
  std::optional<Kernel> kernel;
  std::function<void()> work;  // where it is no kernel
};

}  // namespace

struct SimulatedGpu::Recording {
  std::deque<Node> nodes;
  bool spoiled = false;
};

class SimulatedGpu::Graph final : public runtime::LaunchGraph {
 public:
  Graph(SimulatedGpu& gpu, std::deque<Node> nodes) : gpu_(gpu), nodes_(std::move(nodes)) {}
  size_t size() const override { return nodes_.size(); }
  void update(runtime::GraphNode node, runtime::DeviceFunction function, const runtime::LaunchConfig& config,
              std::span<const int64_t> parameters) override {
    ++gpu_.counters_.graph_updates;
    gpu_.check_config(function.handle, config);
    for (Node& own : nodes_) {
      if (&own != node) continue;
      if (!own.kernel) throw DeviceError("an update of a node that is no kernel");
      own.kernel = Kernel{function, config, {parameters.begin(), parameters.end()}};
      return;
    }
    throw DeviceError("an update of a node of another graph");
  }
  void launch(runtime::Stream stream) override {
    ++gpu_.counters_.graph_runs;
    if (gpu_.launch_failure_.fails()) throw DeviceError("a launch failed, as the test wants");
    if (gpu_.is_recording(stream)) throw DeviceError("a graph inside of a graph is not simulated");
    for (const Node& node : nodes_)
      node.kernel ? gpu_.run(node.kernel->function, node.kernel->config, node.kernel->parameters) : node.work();
  }

 private:
  SimulatedGpu& gpu_;
  std::deque<Node> nodes_;  // nodes have addresses that stay
};

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

void SimulatedGpu::run(runtime::DeviceFunction function, const runtime::LaunchConfig& config,
                       std::vector<int64_t> parameters) {
  constexpr uint32_t kSeed = 1;  // the order of threads is the same in each run of a test
  const auto& code = *static_cast<const SimtFunction*>(function.handle);
  if (const std::string wrong = run_grid(code, config, parameters.data(), kSeed); !wrong.empty())
    throw DeviceError(wrong);
}

void SimulatedGpu::launch(runtime::DeviceFunction function, const runtime::LaunchConfig& config,
                          std::span<const int64_t> parameters, runtime::Stream stream) {
  ++counters_.launches;
  if (launch_failure_.fails()) throw DeviceError("a launch failed, as the test wants");
  if (function.handle == nullptr) throw DeviceError("a launch of no function");
  check_config(function.handle, config);
  std::vector<int64_t> copy(parameters.begin(), parameters.end());
  if (Recording* const recording = this->recording(stream)) {
    recording->nodes.push_back({.kernel = Kernel{function, config, std::move(copy)}, .work = {}});
    return;
  }
  run(function, config, std::move(copy));
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

void SimulatedGpu::copy(void* to, const void* from, size_t bytes, runtime::Stream stream) {
  ++counters_.copies;
  counters_.copied_bytes += static_cast<int64_t>(bytes);
  const auto move = [=] { std::memmove(to, from, bytes); };
  if (!record(stream, move)) move();
}

void SimulatedGpu::fill(void* to, uint8_t value, size_t bytes, runtime::Stream stream) {
  ++counters_.fills;
  counters_.filled_bytes += static_cast<int64_t>(bytes);
  const auto set = [=] { std::memset(to, value, bytes); };
  if (!record(stream, set)) set();
}

void SimulatedGpu::synchronize(runtime::Stream stream) {
  ++counters_.synchronizations;
  if (spoil(stream)) throw DeviceError("a stream that records cannot be waited for");
}

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

// Numbers which the streams of torch's simulated pool do not reach.
runtime::Stream SimulatedGpu::make_stream() {
  static std::atomic<intptr_t> count = 1 << 20;
  return reinterpret_cast<runtime::Stream>(count += 2);
}

SimulatedGpu::Recording* SimulatedGpu::recording(runtime::Stream stream) {
  std::lock_guard lock(mutex_);
  const auto found = recordings_.find(stream);
  return found == recordings_.end() ? nullptr : found->second.get();
}

bool SimulatedGpu::is_recording(runtime::Stream stream) { return recording(stream) != nullptr; }

void SimulatedGpu::begin_recording(runtime::Stream stream) {
  std::lock_guard lock(mutex_);
  if (!recordings_.emplace(stream, std::make_unique<Recording>()).second)
    throw DeviceError("the stream is recording already");
}

runtime::GraphNode SimulatedGpu::last_recorded(runtime::Stream stream) {
  Recording* const recording = this->recording(stream);
  if (recording == nullptr || recording->nodes.empty() || !recording->nodes.back().kernel) return nullptr;
  return &recording->nodes.back();
}

std::unique_ptr<runtime::LaunchGraph> SimulatedGpu::end_recording(runtime::Stream stream) {
  std::unique_ptr<Recording> recording;
  {
    std::lock_guard lock(mutex_);
    const auto found = recordings_.find(stream);
    if (found == recordings_.end()) throw DeviceError("the stream does not record");
    recording = std::move(found->second);
    recordings_.erase(found);
  }
  if (recording->spoiled) throw DeviceError("the stream was given work that cannot be recorded");
  ++counters_.graphs;
  return std::make_unique<Graph>(*this, std::move(recording->nodes));
}

bool SimulatedGpu::record(runtime::Stream stream, std::function<void()> work) {
  Recording* const recording = this->recording(stream);
  if (recording == nullptr) return false;
  recording->nodes.push_back({.kernel = std::nullopt, .work = std::move(work)});
  return true;
}

bool SimulatedGpu::spoil(runtime::Stream stream) {
  Recording* const recording = this->recording(stream);
  if (recording != nullptr) recording->spoiled = true;
  return recording != nullptr;
}

}  // namespace cresset::gpu_simulator
