// Registers the operators of the simulated CUDA devices.
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "cpu_call.h"
#include "cuda_devices.h"
#include "cuda_memory.h"

namespace cresset::gpu_simulator {
namespace {

const c10::DispatchKeySet kDenseCuda(c10::DispatchKey::CUDA);

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(size, &cuda_allocator(), kDenseCuda, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(size, stride, &cuda_allocator(), kDenseCuda, c10::dtype_or_default(dtype));
}

// All work is done when an operator returns.
void record_stream(at::Tensor&, at::Stream) {}

// Operators with a kernel for all devices which ends in a table of kernels by device (DispatchStub), or which chooses
// other operators on GPUs than on the CPU.
constexpr const char* kOperators[] = {"copy_"};

}  // namespace

TORCH_LIBRARY_IMPL(_, CUDA, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&call_on_cpu>()); }

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("record_stream", &record_stream);
  for (const char* name : kOperators) library.impl(name, torch::CppFunction::makeFromBoxedFunction<&call_on_cpu>());
}

}  // namespace cresset::gpu_simulator
