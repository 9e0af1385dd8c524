// Memory shared by the recorded graphs of all programs on a stream: an arena as large as the largest graph needs, a
// pool for allocations of operators, and a stream for recordings. A single call uses the memory at a time. Runs of
// graphs on the same stream follow each other, so the next call may overwrite the contents.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "bridge/device/cuda/allocation_pool.h"
#include "bridge/device/device_memory.h"
#include "runtime/device.h"

namespace cresset::bridge {

class GraphMemory {
 public:
  // Of torch's current stream of the device. nullptr: another call holds it, or the stream is recording.
  class Hold {
   public:
    explicit Hold(GraphMemory* memory) : memory_(memory) {}
    ~Hold() { release(); }
    Hold(Hold&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
    Hold& operator=(Hold&& other) noexcept {
      release();
      memory_ = std::exchange(other.memory_, nullptr);
      return *this;
    }
    explicit operator bool() const { return memory_ != nullptr; }
    GraphMemory* operator->() const { return memory_; }

   private:
    void release();
    GraphMemory* memory_;
  };
  static Hold hold(c10::Device device, runtime::GpuDevice& gpu);
  // Frees arenas and pools; graphs recorded before are recorded again.
  static void trim();

  // At least so many bytes. A larger arena replaces the last, which ends the life of graphs recorded with it.
  char* arena(size_t bytes);
  // Another number whenever graphs recorded before must not run again.
  int64_t generation() const { return generation_; }
  AllocationPool& pool() { return *pool_; }
  c10::Stream recording_stream() const { return *recording_stream_; }

 private:
  GraphMemory(c10::Device device, runtime::GpuDevice& gpu);
  void make_pool();
  void free_all();

  const DeviceMemory& memory_;
  runtime::GpuDevice& gpu_;
  bool held_ = false;
  ArenaBlock arena_{};
  // Libraries keep memory for each stream known to them, from the stream's pool: each pool has its own stream.
  std::unique_ptr<AllocationPool> pool_;
  std::optional<c10::Stream> recording_stream_;
  int64_t generation_ = 0;
};

// Makes this thread record its work for the device, with allocations from the pool. end() gives the graph.
// Without end() the recording is thrown away.
class Recording {
 public:
  Recording(GraphMemory& memory, runtime::GpuDevice& gpu);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  runtime::Stream stream() const { return stream_; }
  std::unique_ptr<runtime::LaunchGraph> end();

 private:
  void leave();
  GraphMemory& memory_;
  runtime::GpuDevice& gpu_;
  const runtime::Stream stream_;
  const std::unique_lock<std::mutex> alone_;  // one recording at a time in the process
  c10::Stream before_;
  bool recording_ = false;
};

}  // namespace cresset::bridge
