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

// For tensors whose elements are zero without any memory (autograd makes them).
class NoMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t) override { return {nullptr, c10::Device(c10::kCUDA, current_device())}; }
  void copy_data(void*, const void*, size_t) const override {}
};

at::Tensor efficient_zero_tensor(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                                 std::optional<at::Device> device, std::optional<bool>) {
  static auto* const none = new NoMemory();
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(size, none, kDenseCuda.add(c10::DispatchKey::ZeroTensor),
                                   c10::dtype_or_default(dtype), std::nullopt);
}

// All work is done when an operator returns.
void record_stream(at::Tensor&, at::Stream) {}

// There is no cuDNN.
bool use_cudnn_ctc_loss(const at::Tensor&, const at::Tensor&, at::IntArrayRef, at::IntArrayRef, int64_t) {
  return false;
}
bool use_cudnn_ctc_loss_tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t) {
  return false;
}

// Operators with a kernel for all devices which ends in a table of kernels by device (DispatchStub), or which chooses
// other operators on GPUs than on the CPU.
constexpr const char* kOperators[] = {"copy_",
                                      "convolution",
                                      "convolution_backward",
                                      "native_layer_norm",
                                      "native_group_norm",
                                      "native_group_norm_backward"};

}  // namespace

TORCH_LIBRARY_IMPL(_, CUDA, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&call_on_cpu>()); }

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("record_stream", &record_stream);
  library.impl("_efficientzerotensor", &efficient_zero_tensor);
  library.impl("_use_cudnn_ctc_loss", &use_cudnn_ctc_loss);
  library.impl("_use_cudnn_ctc_loss.Tensor", &use_cudnn_ctc_loss_tensor);
  for (const char* name : kOperators) library.impl(name, torch::CppFunction::makeFromBoxedFunction<&call_on_cpu>());
}

}  // namespace cresset::gpu_simulator
