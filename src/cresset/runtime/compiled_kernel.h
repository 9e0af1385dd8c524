// A loop kernel in executable form: machine code, and the launch numbers computed from the sizes of a call. The
// backends of codegen create compiled kernels. The tape (program.h) launches them, independent of the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/device.h"
#include "base/result.h"
#include "sym/size_program.h"

namespace cresset::runtime {

// Machine code of a kernel, as stored on disk and loaded into a device.
struct KernelImage {
  enum class Format : uint8_t { Object, Cubin, Ptx };
  Format format = Format::Object;
  std::string bytes;
  std::string entry;  // name of the function
};

// The numbers of a launch (number of work items, size of the grid, additional memory), over the kernel's size symbols.
// The backend defines the order of the outputs.
struct LaunchPlan {
  sym::SizeProgram numbers;
};

// Identifies a kernel for another process.
struct KernelRecord {
  DeviceKind device = DeviceKind::Cpu;
  std::string hash;  // of all inputs which determine the code; names the image on disk
  LaunchPlan plan;
};

// The arguments of a launch in a single block: the addresses of the buffers' elements 0, 8 bytes each, then the values
// of the kernel's size symbols, 8 bytes each. Addresses may be patched between launches.
struct ParamBlock {
  std::byte* bytes = nullptr;
  uint32_t buffers = 0, symbols = 0;

  static size_t size(size_t buffers, size_t symbols) { return (buffers + symbols) * sizeof(int64_t); }
  void** buffer(size_t i) const { return reinterpret_cast<void**>(bytes) + i; }
  int64_t* symbol(size_t i) const { return reinterpret_cast<int64_t*>(bytes) + buffers + i; }
};

// Properties of all launches in a call.
struct LaunchContext {
  // Runs body(context, i) for each i in [0, count), in parallel where there are threads.
  using RunOnThreads = void (*)(int count, void (*body)(void* context, int i), void* context);
  int host_threads = 1;
  RunOnThreads run_on_threads = nullptr;  // for CPU kernels; nullptr: a single thread
  void* stream = nullptr;                 // for GPU kernels: launches are enqueued here
};

struct GpuLaunches;

// A kernel bound to the sizes of a call. It is launched repeatedly with changing addresses in the parameter block,
// which outlives the kernel. Only a single call uses it at a time.
class BoundKernel {
 public:
  virtual ~BoundKernel() = default;
  // Writable device memory which a launch needs in addition to the buffers.
  virtual int64_t scratch_bytes(const LaunchContext& context) const = 0;
  virtual void launch(const LaunchContext& context, void* scratch) const = 0;
  // For a kernel on a GPU, the launches that launch() enqueues (device.h); overwritten by the next call. nullptr: the
  // kernel runs elsewhere.
  virtual GpuLaunches* gpu_launches(void* /*scratch*/) const { return nullptr; }
};

// A compiled kernel, shared by all programs of the process which contain the kernel.
class CompiledKernel {
 public:
  explicit CompiledKernel(KernelRecord record) : record_(std::move(record)) {}
  virtual ~CompiledKernel() = default;
  CompiledKernel(const CompiledKernel&) = delete;
  CompiledKernel& operator=(const CompiledKernel&) = delete;

  const KernelRecord& record() const { return record_; }
  DeviceKind device() const { return record_.device; }
  // The symbols' values must be in the block; the addresses may be set later.
  virtual std::unique_ptr<BoundKernel> bind(ParamBlock params) const = 0;

 private:
  const KernelRecord record_;
};

}  // namespace cresset::runtime
