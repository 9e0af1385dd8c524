// A kernel as a function of this process, and its launch over threads.
#pragma once

#include <array>
#include <memory>

#include "runtime/compiled_kernel.h"

namespace cresset::codegen::cpu {

// The compiled form of a kernel. It computes the outer points [begin, end) of the work dimension (WorkItems), with all
// inner points of each. Thread-safe for disjoint ranges. `buffers`: element-0 pointers in Kernel::buffers order;
// `symbols`: values in Kernel::size_symbols() order. `scratch`: writable bytes private to the call.
using KernelFn = void (*)(void* const* buffers, const int64_t* symbols, int64_t begin, int64_t end, void* scratch);

// Outputs of a CPU kernel's LaunchPlan, in order.
enum Number : uint8_t {
  kWorkItems,     // independent: ranges of [0, work items) may run in parallel
  kItemCost,      // approximate cost of a work item, in elements accessed: chooses the number of threads
  kScratchBytes,  // for each thread
  kNumbers
};

class HostKernel final : public runtime::CompiledKernel {
 public:
  HostKernel(KernelFn fn, runtime::KernelRecord record) : CompiledKernel(std::move(record)), fn_(fn) {}
  KernelFn fn() const { return fn_; }
  // Downcasts a kernel of the CPU backend.
  static const HostKernel& from(const runtime::CompiledKernel& kernel) {
    return static_cast<const HostKernel&>(kernel);
  }
  std::array<int64_t, kNumbers> numbers(const int64_t* symbols) const;
  std::unique_ptr<runtime::BoundKernel> bind(runtime::ParamBlock params) const override;

 private:
  const KernelFn fn_;
};

}  // namespace cresset::codegen::cpu
