// A loop kernel as a device runs it: machine code, and the numbers that a launch takes from the sizes of a call. The
// backends of codegen make these; the tape (program.h) launches them, whatever the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/device.h"
#include "base/result.h"
#include "sym/size_program.h"

namespace cresset::runtime {

// Machine code of one kernel, as it is kept on disk and loaded into a device.
struct KernelImage {
  enum class Format : uint8_t { Object, Cubin, Ptx };
  Format format = Format::Object;
  std::string bytes;
  std::string entry;  // name of the function
};

// The numbers of a launch (how many work items, how large a grid, how much memory beside the arguments), over the
// kernel's size symbols. The order of its outputs is the backend's.
struct LaunchPlan {
  sym::SizeProgram numbers;
};

// Finds a kernel again in another process.
struct KernelRecord {
  DeviceKind device = DeviceKind::Cpu;
  std::string hash;  // of all that decides the code; names the image on disk
  LaunchPlan plan;
};

// The arguments of one launch in one block: the addresses of the buffers' elements 0, 8 bytes each, then the values of
// the kernel's size symbols, 8 bytes each. Addresses may be patched between launches.
struct ParamBlock {
  std::byte* bytes = nullptr;
  uint32_t buffers = 0, symbols = 0;

  static size_t size(size_t buffers, size_t symbols) { return (buffers + symbols) * sizeof(int64_t); }
  void** buffer(size_t i) const { return reinterpret_cast<void**>(bytes) + i; }
  int64_t* symbol(size_t i) const { return reinterpret_cast<int64_t*>(bytes) + buffers + i; }
};

// What holds for every launch of one call.
struct LaunchContext {
  // Runs body(context, i) for each i in [0, count), at once where there are threads.
  using RunOnThreads = void (*)(int count, void (*body)(void* context, int i), void* context);
  int host_threads = 1;
  RunOnThreads run_on_threads = nullptr;  // for a CPU's kernels; nullptr: one thread
  void* stream = nullptr;                 // for a GPU's kernels: where launches queue
};

// A kernel with the sizes of a call: launched again and again, with other addresses in the parameter block, which
// outlives it. Used by one call at a time.
class BoundKernel {
 public:
  virtual ~BoundKernel() = default;
  // Writable memory of the device that a launch needs beside the buffers.
  virtual int64_t scratch_bytes(const LaunchContext& context) const = 0;
  virtual void launch(const LaunchContext& context, void* scratch) const = 0;
};

// Shared by all programs of the process that contain the kernel.
class CompiledKernel {
 public:
  explicit CompiledKernel(KernelRecord record) : record_(std::move(record)) {}
  virtual ~CompiledKernel() = default;
  CompiledKernel(const CompiledKernel&) = delete;
  CompiledKernel& operator=(const CompiledKernel&) = delete;

  const KernelRecord& record() const { return record_; }
  DeviceKind device() const { return record_.device; }
  // The symbols' values are in the block; the addresses may come later.
  virtual std::unique_ptr<BoundKernel> bind(ParamBlock params) const = 0;

 private:
  const KernelRecord record_;
};

}  // namespace cresset::runtime
