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

bool is_16_bit(const c10::IValue& value) {
  return value.toTensor().scalar_type() == at::kHalf || value.toTensor().scalar_type() == at::kBFloat16;
}

// Results: (output, mean, rstd). GPUs keep statistics of 16-bit inputs as f32. The input is the argument `kInput` from
// the last.
template <size_t kInput>
void with_f32_statistics(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const bool keeps_f32 = is_16_bit(from_last(stack, kInput));
  call_on_cpu(op, stack);
  for (size_t i = 0; keeps_f32 && i < 2; ++i) from_last(stack, i) = from_last(stack, i).toTensor().to(at::kFloat);
}

// (grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask). The CPU's kernel wants the dtype that its
// forward pass gives: f32 beside parameters of f32 alone.
void layer_norm_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::Tensor input = from_last(stack, 6).toTensor();
  const auto has_f32 = [&](size_t i) {
    return from_last(stack, i).isTensor() && from_last(stack, i).toTensor().scalar_type() == at::kFloat;
  };
  const bool wants_f32 = has_f32(2) || has_f32(1);
  for (size_t i = 3; !wants_f32 && i < 5; ++i)
    from_last(stack, i) = from_last(stack, i).toTensor().to(input.scalar_type());
  call_on_cpu(op, stack);
}

// (grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask)
void batch_norm_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const bool has_f32_weight =
      from_last(stack, 7).isTensor() && from_last(stack, 7).toTensor().scalar_type() == at::kFloat;
  for (size_t i = 3; !has_f32_weight && i < 5; ++i)
    if (from_last(stack, i).isTensor())
      from_last(stack, i) = from_last(stack, i).toTensor().to(from_last(stack, 8).toTensor().scalar_type());
  call_on_cpu(op, stack);
}

// There are no libraries for losses.
bool use_ctc_library(const at::Tensor&, const at::Tensor&, at::IntArrayRef, at::IntArrayRef, int64_t) { return false; }
bool use_ctc_library_by_tensors(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t) {
  return false;
}

// Operators with a kernel for all devices which ends in a table of kernels by device (DispatchStub), or which chooses
// other operators on GPUs than on the CPU.
constexpr const char* kOperators[] = {"copy_", "convolution", "convolution_backward", "native_group_norm",
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
  library.impl("native_layer_norm", CppFunction::makeFromBoxedFunction<&with_f32_statistics<4>>());
  library.impl("native_layer_norm_backward", CppFunction::makeFromBoxedFunction<&layer_norm_backward>());
  library.impl("native_batch_norm", CppFunction::makeFromBoxedFunction<&with_f32_statistics<7>>());
  library.impl("_native_batch_norm_legit", CppFunction::makeFromBoxedFunction<&with_f32_statistics<7>>());
  library.impl("_native_batch_norm_legit.no_stats", CppFunction::makeFromBoxedFunction<&with_f32_statistics<5>>());
  library.impl("native_batch_norm_backward", CppFunction::makeFromBoxedFunction<&batch_norm_backward>());
  for (const char* name : kOperators) library.impl(name, CppFunction::makeFromBoxedFunction<&call_on_cpu>());
}

}  // namespace cresset::gpu_simulator
