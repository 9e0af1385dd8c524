// A GPU whose memory is the host's and whose kernels run on the host's processor (simt_threads.h). Streams are any
// pointers: each call is complete when it returns.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "codegen/nvptx/assembler.h"
#include "runtime/device.h"
#include "simt_module.h"

namespace cresset::gpu_simulator {

// Events since the device was made.
struct GpuCounters {
  std::atomic<int64_t> loads{0};  // of images
  std::atomic<int64_t> launches{0};
  std::atomic<int64_t> allocations{0}, allocated_bytes{0};  // both: device and host memory
  std::atomic<int64_t> live_allocations{0};
  std::atomic<int64_t> copies{0}, copied_bytes{0};
  std::atomic<int64_t> fills{0}, filled_bytes{0};
  std::atomic<int64_t> synchronizations{0};
  std::atomic<int64_t> graphs{0}, graph_runs{0}, graph_updates{0};
};

// Fails a single event: the next if n is 1.
class FailureCountdown {
 public:
  void set(int64_t n) { left_ = n; }
  // Counts an event, and tells whether it fails.
  bool fails() { return left_ > 0 && --left_ == 0; }

 private:
  std::atomic<int64_t> left_{0};
};

class SimulatedGpu final : public runtime::GpuDevice {
 public:
  SimulatedGpu();
  ~SimulatedGpu() override;

  const GpuCounters& counters() const { return counters_; }
  // The n-th event from now throws DeviceError, once.
  void fail_launch(int64_t n) { launch_failure_.set(n); }
  void fail_allocation(int64_t n) { allocation_failure_.set(n); }

  const runtime::DeviceProperties& properties() const override { return properties_; }
  Result<void*> load(const runtime::KernelImage& image) override;
  runtime::DeviceFunction function(void* loaded, const std::string& name) override;
  runtime::FunctionProperties properties_of(runtime::DeviceFunction) override { return {}; }
  void allow_shared(runtime::DeviceFunction function, int64_t bytes) override;
  void launch(runtime::DeviceFunction function, const runtime::LaunchConfig& config,
              std::span<const int64_t> parameters, runtime::Stream stream) override;
  void* allocate(size_t bytes) override;
  void free(void* memory) override;
  void* allocate_host(size_t bytes) override { return allocate(bytes); }
  void free_host(void* memory) override { free(memory); }
  void copy(void* to, const void* from, size_t bytes, runtime::Stream stream) override;
  void fill(void* to, uint8_t value, size_t bytes, runtime::Stream stream) override;
  void synchronize(runtime::Stream stream) override;
  runtime::Event make_event() override;
  void destroy(runtime::Event event) override;
  void record(runtime::Event event, runtime::Stream stream) override;
  bool is_done(runtime::Event) override { return true; }
  double milliseconds_between(runtime::Event begin, runtime::Event end) override;
  runtime::Stream make_stream() override;
  bool is_recording(runtime::Stream stream) override;
  void begin_recording(runtime::Stream stream) override;
  runtime::GraphNode last_recorded(runtime::Stream stream) override;
  std::unique_ptr<runtime::LaunchGraph> end_recording(runtime::Stream stream) override;

  // Adds work of another kind to the recording of the stream, if there is one. `work` is no kernel.
  bool record(runtime::Stream stream, std::function<void()> work);
  // The work recorded on the stream cannot be recorded: the recording fails at its end.
  bool spoil(runtime::Stream stream);

 private:
  struct Recording;
  class Graph;
  // nullptr: the stream does not record.
  Recording* recording(runtime::Stream stream);
  void run(runtime::DeviceFunction function, const runtime::LaunchConfig& config, std::vector<int64_t> parameters);
  void check_config(const void* function, const runtime::LaunchConfig& config);

  const runtime::DeviceProperties properties_;
  GpuCounters counters_;
  FailureCountdown launch_failure_, allocation_failure_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<SimtModule>> modules_;
  std::unordered_map<const void*, int64_t> shared_limits_;  // by function, where raised
  std::unordered_map<runtime::Stream, std::unique_ptr<Recording>> recordings_;
};

// Gives the device the text of LLVM as the image.
std::shared_ptr<const codegen::nvptx::Assembler> make_simulator_assembler();

}  // namespace cresset::gpu_simulator
