// Registers the operators of the simulated CUDA devices.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
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

// The argument of an operator on the stack, counted from its last.
c10::IValue& from_last(torch::jit::Stack* stack, size_t i) { return (*stack)[stack->size() - 1 - i]; }

// (self, dim, half_to_float, out). Only GPUs read f16 and write f32.
void softmax(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (from_last(stack, 1).toBool()) {
    from_last(stack, 1) = false;
    from_last(stack, 3) = from_last(stack, 3).toTensor().to(at::kFloat);
  }
  call_on_cpu(op, stack);
}

// (grad_output, output, dim, input_dtype, grad_input). The other way: f32 is read, and f16 written.
void softmax_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::Tensor grad_input = from_last(stack, 0).toTensor(), grad_output = from_last(stack, 4).toTensor();
  if (grad_input.scalar_type() == grad_output.scalar_type()) return call_on_cpu(op, stack);
  from_last(stack, 0) = at::empty_like(grad_output);
  from_last(stack, 1) = grad_output.scalar_type();
  call_on_cpu(op, stack);
  at::native::resize_output(grad_input, grad_output.sizes());
  from_last(stack, 0) = grad_input.copy_(from_last(stack, 0).toTensor());
}

// There are no libraries for losses.
bool use_ctc_library(const at::Tensor&, const at::Tensor&, at::IntArrayRef, at::IntArrayRef, int64_t) { return false; }
bool use_ctc_library_by_tensors(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t) {
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
  for (const std::string name : {"_use_cudnn_ctc_loss", "_use_miopen_ctc_loss"}) {
    library.impl(name.c_str(), &use_ctc_library);
    library.impl((name + ".Tensor").c_str(), &use_ctc_library_by_tensors);
  }
  using torch::CppFunction;
  for (const char* name : {"_softmax.out", "_log_softmax.out"})
    library.impl(name, CppFunction::makeFromBoxedFunction<&softmax>());
  for (const char* name : {"_softmax_backward_data.out", "_log_softmax_backward_data.out"})
    library.impl(name, CppFunction::makeFromBoxedFunction<&softmax_backward>());
  for (const char* name : kOperators) library.impl(name, CppFunction::makeFromBoxedFunction<&call_on_cpu>());
}

}  // namespace cresset::gpu_simulator
