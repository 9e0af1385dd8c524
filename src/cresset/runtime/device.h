// A device that runs kernels in streams, apart from torch: code, launches, copies, events. Failures of the device throw
// DeviceError; they are no reason to compile otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/compiled_kernel.h"

namespace cresset::runtime {

class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct DeviceProperties {
  std::string name;
  int chip = 0;  // 90: sm_90
  int multiprocessors = 0;
  int threads_of_multiprocessor = 0;
  int64_t shared_bytes = 0;  // that a block may ask for
  int64_t l2_bytes = 0;
  int driver_version = 0;
};

struct LaunchConfig {
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;
  bool operator==(const LaunchConfig&) const = default;
};

// A function of an image that was loaded; nullptr: none. Lives as long as the process.
struct DeviceFunction {
  void* handle = nullptr;
};
struct FunctionProperties {
  int registers = 0, shared_bytes = 0, local_bytes = 0;
};

using Stream = void*;  // nullptr: the default one
using Event = void*;

// The launches of a kernel for its present addresses: one for each element of `last`, which replaces the last
// parameter.
struct GpuLaunches {
  DeviceFunction function;
  LaunchConfig config;
  std::vector<int64_t> parameters;
  std::vector<int64_t> last;  // empty: nothing is to be computed
};

using GraphNode = void*;

// Work recorded from a stream, which runs again as a whole (a CUDA graph). It must not be destroyed by a thread that is
// recording.
class LaunchGraph {
 public:
  virtual ~LaunchGraph() = default;
  virtual size_t size() const = 0;  // number of nodes
  // Replaces a kernel's launch from the next run on.
  virtual void update(GraphNode node, DeviceFunction function, const LaunchConfig& config,
                      std::span<const int64_t> parameters) = 0;
  virtual void launch(Stream stream) = 0;
};

class GpuDevice {
 public:
  virtual ~GpuDevice() = default;
  virtual const DeviceProperties& properties() const = 0;

  // Loads an image once; its functions may be launched on any device of the kind. Fallback: it is no code of this chip.
  virtual Result<void*> load(const KernelImage& image) = 0;
  // Nothing where the image has no such function.
  virtual DeviceFunction function(void* loaded, const std::string& name) = 0;
  virtual FunctionProperties properties_of(DeviceFunction function) = 0;
  // Lets launches of the function ask for that much dynamic shared memory.
  virtual void allow_shared(DeviceFunction function, int64_t bytes) = 0;

  // `parameters`: the packed block that the function takes. It may change as soon as the call returns.
  virtual void launch(DeviceFunction function, const LaunchConfig& config, std::span<const int64_t> parameters,
                      Stream stream) = 0;
  void launch_all(GpuLaunches& launches, Stream stream) {
    for (const int64_t last : launches.last) {
      launches.parameters.back() = last;
      launch(launches.function, launches.config, launches.parameters, stream);
    }
  }
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* memory) = 0;
  // Memory of the host that kernels access at the same address.
  virtual void* allocate_host(size_t bytes) = 0;
  virtual void free_host(void* memory) = 0;
  virtual void copy(void* to, const void* from, size_t bytes, Stream stream) = 0;  // between host and device too
  virtual void fill(void* to, uint8_t value, size_t bytes, Stream stream) = 0;
  virtual void synchronize(Stream stream) = 0;

  virtual Event make_event() = 0;
  virtual void destroy(Event event) = 0;
  virtual void record(Event event, Stream stream) = 0;
  virtual bool is_done(Event event) = 0;
  virtual double milliseconds_between(Event begin, Event end) = 0;  // waits for `end`

  // A stream of its own on this thread's current device, which lives as long as the process.
  virtual Stream make_stream() = 0;
  virtual bool is_recording(Stream stream) = 0;
  // What this thread enqueues on the stream from now on is recorded, and does not run.
  virtual void begin_recording(Stream stream) = 0;
  // The node of the last work; nullptr: there is none, or the last work has several nodes.
  virtual GraphNode last_recorded(Stream stream) = 0;
  // Ends the recording, also by an exception: DeviceError if the stream was given work that cannot be recorded.
  virtual std::unique_ptr<LaunchGraph> end_recording(Stream stream) = 0;
};

}  // namespace cresset::runtime
