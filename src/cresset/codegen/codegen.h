// Machine code from kernels. No torch: vector math comes from a symbol resolver that the bridge supplies.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "loop/kernel.h"
#include "sym/size_program.h"

namespace cresset::codegen {

// The compiled form of a kernel. Computes the outer points [begin, end) of the work dimension (see work_items), all
// inner points of each. Thread safe for disjoint ranges. `buffers`: element-0 pointers in Kernel::buffers order;
// `symbols`: values in Kernel::size_symbols() order. `scratch`: scratch_bytes() writable bytes private to the call.
using KernelFn = void (*)(void* const* buffers, const int64_t* symbols, int64_t begin, int64_t end, void* scratch);

// What finds a kernel again in another process: the name of its code on disk, and its three numbers below.
struct KernelRecord {
  std::string hash;
  sym::SizeProgram sizes;
};

class CompiledKernel {
 public:
  virtual ~CompiledKernel() = default;
  // nullptr: it cannot be found again.
  virtual const KernelRecord* record() const { return nullptr; }
  virtual KernelFn fn() const = 0;
  // How many independent work items the kernel has for these sizes; ranges of [0, work_items) may run in parallel.
  virtual int64_t work_items(const int64_t* symbols) const = 0;
  // Rough cost of one work item in elements touched, for choosing the number of threads.
  virtual int64_t item_cost(const int64_t* symbols) const = 0;
  virtual int64_t scratch_bytes(const int64_t* symbols) const = 0;
};

// Which vector-math functions exist: returns the address of e.g. "Sleef_expf16_u10", or nullptr.
using SymbolResolver = void* (*)(const char* name);

struct CpuOptions {
  SymbolResolver resolver = nullptr;  // nullptr: scalar libm, one lane at a time
  int vector_bits = 0;                // 0: the host's widest
  bool from_disk_cache = true;
};

struct CodegenStats {
  int64_t kernels_requested = 0, kernels_compiled = 0, memory_hits = 0, disk_hits = 0;
  double milliseconds = 0;
};

class CpuCodegen {
 public:
  static CpuCodegen& get();  // process-wide: kernels are compiled once and shared. Thread safe.
  void configure(CpuOptions options);

  // Compiles (or finds) all kernels of a program, together. Result i belongs to kernels[i].
  Result<std::vector<std::shared_ptr<const CompiledKernel>>> compile(const std::vector<const loop::Kernel*>& kernels);

  // The same in two steps, between which any time may pass. Scheduling writes to the kernels' environment (it
  // simplifies); generating reads it only, so that others may read it meanwhile. The kernels must outlive the
  // schedules.
  struct Scheduled;
  std::shared_ptr<Scheduled> schedule(const std::vector<const loop::Kernel*>& kernels);
  static size_t distinct(const Scheduled& scheduled);
  Result<std::vector<std::shared_ptr<const CompiledKernel>>> generate(const Scheduled& scheduled);

  // Kernels of an earlier process, from memory or disk; nullopt when one of them is missing.
  std::optional<std::vector<std::shared_ptr<const CompiledKernel>>> find(const std::vector<KernelRecord>& records);
  // Version of the code generator, machine and libraries: what decides code beside the kernel.
  std::string target_text();
  bool uses_disk();

  CodegenStats stats() const;
  void clear_memory_cache();

 private:
  CpuCodegen();
  ~CpuCodegen();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cresset::codegen
