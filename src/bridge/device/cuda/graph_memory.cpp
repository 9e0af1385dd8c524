#include "bridge/device/cuda/graph_memory.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <map>

#include "base/check.h"
#include "bridge/device/cuda/cuda_memory.h"

namespace cresset::bridge {
namespace {

const c10::impl::DeviceGuardImplInterface& guard() { return *c10::impl::getDeviceGuardImpl(c10::kCUDA); }

// A stream that torch did not make is known by its address.
c10::Stream as_torch(runtime::Stream stream, c10::Device device) {
  const c10::Stream out(c10::Stream::UNSAFE, device, reinterpret_cast<c10::StreamId>(stream));
  CRESSET_CHECK(guard().getStreamNativeHandle(out) == stream, "torch knows streams of other libraries otherwise");
  return out;
}

// Of the process; never destroyed, since programs die late.
struct Memories {
  std::mutex mutex;
  std::map<std::pair<c10::DeviceIndex, c10::StreamId>, std::unique_ptr<GraphMemory>> by_stream;
};
Memories& memories() {
  static auto* const memories = new Memories();
  return *memories;
}

std::mutex& recording_mutex() {
  static auto* const mutex = new std::mutex();
  return *mutex;
}

}  // namespace

GraphMemory::GraphMemory(c10::Device device, runtime::GpuDevice& gpu) : memory_(DeviceMemory::of(device)), gpu_(gpu) {}

GraphMemory::Hold GraphMemory::hold(c10::Device device, runtime::GpuDevice& gpu) {
  const c10::Stream stream = guard().getStream(device);
  if (gpu.is_recording(guard().getStreamNativeHandle(stream))) return Hold(nullptr);
  const std::lock_guard lock(memories().mutex);
  std::unique_ptr<GraphMemory>& memory = memories().by_stream[{device.index(), stream.id()}];
  if (memory == nullptr) memory.reset(new GraphMemory(device, gpu));
  if (memory->held_) return Hold(nullptr);
  if (memory->pool_ == nullptr) memory->make_pool();
  memory->held_ = true;
  return Hold(memory.get());
}

void GraphMemory::Hold::release() {
  if (memory_ == nullptr) return;
  const std::lock_guard lock(memories().mutex);
  memory_->held_ = false;
}

void GraphMemory::trim() {
  const std::lock_guard lock(memories().mutex);
  for (const auto& [stream, memory] : memories().by_stream)
    if (!memory->held_) memory->free_all();
}

void GraphMemory::free_all() {
  if (arena_.bytes != 0) memory_.release(std::exchange(arena_, {}));
  pool_.reset();
  ++generation_;
}

char* GraphMemory::arena(size_t bytes) {
  if (arena_.bytes >= bytes) return arena_.data;
  if (arena_.bytes != 0) memory_.release(std::exchange(arena_, {}));
  ++generation_;
  arena_ = memory_.acquire(bytes, 0);
  return arena_.data;
}

void GraphMemory::make_pool() {
  recording_stream_ = as_torch(gpu_.make_stream(), memory_.device());
  pool_ = make_allocation_pool(memory_.device());
}

Recording::Recording(GraphMemory& memory, runtime::GpuDevice& gpu)
    : memory_(memory),
      gpu_(gpu),
      stream_(guard().getStreamNativeHandle(memory.recording_stream())),
      alone_(recording_mutex()),
      before_(guard().exchangeStream(memory.recording_stream())) {
  memory_.pool().begin(stream_);
  try {
    gpu_.begin_recording(stream_);
  } catch (...) {
    leave();
    throw;
  }
  recording_ = true;
}

void Recording::leave() {
  recording_ = false;
  memory_.pool().end();
  guard().exchangeStream(before_);
}

Recording::~Recording() {
  if (!recording_) return;
  try {
    gpu_.end_recording(stream_);
  } catch (const runtime::DeviceError&) {  // it is spoiled, as its reader knows
  }
  leave();
}

std::unique_ptr<runtime::LaunchGraph> Recording::end() {
  std::unique_ptr<runtime::LaunchGraph> graph;
  try {
    graph = gpu_.end_recording(stream_);
  } catch (...) {
    leave();
    throw;
  }
  leave();
  return graph;
}

}  // namespace cresset::bridge
