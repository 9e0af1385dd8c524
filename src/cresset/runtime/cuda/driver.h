// The CUDA driver as a table of functions that are looked up when they are first wanted: nothing of CUDA is needed to
// build, and a machine without a driver is told so by a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace cresset::runtime::cuda {

struct Driver {
#define CRESSET_CUDA(symbol, member, parameters) int(*member) parameters = nullptr;
#define CRESSET_CUDA_GRAPH CRESSET_CUDA
#include "runtime/cuda/driver.def"
#undef CRESSET_CUDA_GRAPH
#undef CRESSET_CUDA
  bool has_graphs = true;

  // Opens the library and calls cuInit. Fallback: there is no such library, no device, or it is too old.
  static Result<std::shared_ptr<const Driver>> open(const char* library = "libcuda.so.1");
  // The same, once a process.
  static const Result<std::shared_ptr<const Driver>>& get();

  // Throws DeviceError unless `status` is success.
  void check(int status, const char* what) const;
};

// A kernel's parameters as a packed block, in the form of cuLaunchKernel and of graph nodes: `extra`. The block must
// outlive the object.
class PackedParameters {
 public:
  explicit PackedParameters(std::span<const int64_t> block)
      : bytes_(block.size_bytes()),
        // CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END.
        extra_{reinterpret_cast<void*>(1), const_cast<int64_t*>(block.data()), reinterpret_cast<void*>(2), &bytes_,
               nullptr} {}
  PackedParameters(const PackedParameters&) = delete;
  PackedParameters& operator=(const PackedParameters&) = delete;
  void** extra() { return extra_; }

 private:
  size_t bytes_;
  void* extra_[5];
};

// Values of CUdevice_attribute and CUfunction_attribute.
inline constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76, kThreadsOfMultiprocessor = 39,
                     kSharedOfBlockOptin = 97, kL2Bytes = 38;
inline constexpr int kSharedBytes = 1, kLocalBytes = 3, kRegisters = 4, kMostDynamicSharedBytes = 8;
inline constexpr int kNotReady = 600;
// Flags of cuMemHostAlloc: memory that all contexts use, and kernels too.
inline constexpr unsigned kPortable = 1, kDeviceMapped = 2;

}  // namespace cresset::runtime::cuda
