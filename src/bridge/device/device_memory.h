// Memory of a device from torch's point of view: results, arenas, and tensors over memory owned by the program.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include "bridge/device/cpu/arena.h"

namespace cresset::bridge {

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // The memory of a device on which programs may run. Lives as long as the process.
  static const DeviceMemory& of(c10::Device device);

  c10::Device device() const { return device_; }
  // A result tensor, which outlives the call. Its memory comes from the device's allocator.
  virtual at::Tensor allocate(c10::IntArrayRef sizes, c10::IntArrayRef strides, at::ScalarType dtype) const = 0;
  // A block for intermediates; `preferred` is the id of the last call's block.
  virtual ArenaBlock acquire(size_t bytes, uint64_t preferred) const = 0;
  virtual void release(const ArenaBlock& block) const = 0;
  // Whether the blocks come from torch's allocator, which reports them to torch's memory profiler.
  virtual bool reports_itself() const { return false; }

  // A storage which does not own its memory. point() sets the memory at each call.
  c10::intrusive_ptr<c10::StorageImpl> borrow(size_t bytes) const;
  void point(c10::StorageImpl& storage, void* memory) const;
  at::Tensor over(const c10::intrusive_ptr<c10::StorageImpl>& storage, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                  int64_t offset, at::ScalarType dtype) const;

 protected:
  DeviceMemory(c10::Device device, c10::DispatchKey key) : device_(device), key_(key) {}

 private:
  const c10::Device device_;
  const c10::DispatchKey key_;  // dispatch key of plain tensors
};

// RAII for an arena block. It reports a block unknown to torch's allocators to torch's memory profiler.
class HeldArena {
 public:
  HeldArena(const DeviceMemory& memory, size_t bytes, uint64_t preferred);
  ~HeldArena();
  HeldArena(const HeldArena&) = delete;
  HeldArena& operator=(const HeldArena&) = delete;
  const ArenaBlock& block() const { return block_; }

 private:
  void report(int64_t bytes) const;
  const DeviceMemory& memory_;
  const ArenaBlock block_;
  const int64_t reported_;
};

}  // namespace cresset::bridge
