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

// (input, weight, bias, running_mean, running_var, training, momentum, eps). Without training, GPUs save the running
// statistics.
void batch_norm(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const bool training = from_last(stack, 2).toBool();
  const double eps = from_last(stack, 0).toDouble();
  const c10::IValue mean = from_last(stack, 4), variance = from_last(stack, 3);
  with_f32_statistics<7>(op, stack);
  if (training) return;
  const at::ScalarType saved = from_last(stack, 0).toTensor().scalar_type();
  from_last(stack, 1) = mean.toTensor().to(saved, false, /*copy=*/true, at::MemoryFormat::Contiguous);
  from_last(stack, 0) = variance.toTensor().to(saved).add(eps).rsqrt();
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

// (weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx),
// with the results (output, offset2bag, bag_size, max_indices). The CPU's kernels leave out numbers which their
// derivatives do not read, and their bags have no place for the last offset.
void embedding_bag(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  constexpr int64_t kMax = 2;  // the mode
  const at::Tensor indices = from_last(stack, 7).toTensor(), offsets = from_last(stack, 6).toTensor();
  const bool max = from_last(stack, 4).toInt() == kMax;
  const int64_t padding = from_last(stack, 0).toInt();
  const int64_t bags = std::max<int64_t>(offsets.size(0) - (from_last(stack, 1).toBool() ? 1 : 0), 0);
  const at::ScalarType dtype = c10::promoteTypes(indices.scalar_type(), offsets.scalar_type());
  call_on_cpu(op, stack);
  const at::Tensor at = at::arange(indices.size(0), indices.options().dtype(at::kLong));
  const at::Tensor bag_of =
      at::searchsorted(offsets.narrow(0, 0, bags).to(at::kLong), at, false, /*right=*/true).sub(1).clamp_min(0);
  const at::Tensor counts = at::zeros(offsets.sizes(), indices.options().dtype(at::kLong));
  if (bags > 0) counts.scatter_add_(0, bag_of, indices.ne(padding).to(at::kLong));
  from_last(stack, 2) = bag_of.to(dtype);
  from_last(stack, 1) = counts.to(dtype);
  const at::Tensor greatest = from_last(stack, 0).toTensor();
  from_last(stack, 0) = max ? greatest.to(dtype) : at::empty({0}, indices.options().dtype(dtype));
}

// GPUs have the operator in 16 bits, and the CPU has not: it runs on the same numbers as f32.
void in_f32(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  std::optional<at::ScalarType> narrow;
  for (size_t i = 0; i < op.schema().arguments().size(); ++i) {
    c10::IValue& value = from_last(stack, i);
    if (!value.isTensor() || !value.toTensor().defined() || !is_16_bit(value)) continue;
    narrow = value.toTensor().scalar_type();
    value = value.toTensor().to(at::kFloat);
  }
  call_on_cpu(op, stack);
  for (size_t i = 0; narrow && i < op.schema().returns().size(); ++i)
    from_last(stack, i) = from_last(stack, i).toTensor().to(*narrow);
}

at::Tensor cudnn_grid_sampler(const at::Tensor& input, const at::Tensor& grid) {
  constexpr int64_t kBilinear = 0, kZeros = 0;
  return at::grid_sampler_2d(input, grid, kBilinear, kZeros, /*align_corners=*/true);
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
  for (const char* name : {"native_batch_norm", "_native_batch_norm_legit"})
    library.impl(name, CppFunction::makeFromBoxedFunction<&batch_norm>());
  library.impl("_native_batch_norm_legit.no_stats", CppFunction::makeFromBoxedFunction<&with_f32_statistics<5>>());
  library.impl("native_batch_norm_backward", CppFunction::makeFromBoxedFunction<&batch_norm_backward>());
  for (const char* name : {"_embedding_bag", "_embedding_bag_forward_only"})
    library.impl(name, CppFunction::makeFromBoxedFunction<&embedding_bag>());
  for (const char* name : {"multi_margin_loss", "multi_margin_loss_backward", "multilabel_margin_loss_forward",
                           "multilabel_margin_loss_backward"})
    library.impl(name, CppFunction::makeFromBoxedFunction<&in_f32>());
  library.impl("cudnn_grid_sampler", &cudnn_grid_sampler);
  for (const char* name : kOperators) library.impl(name, CppFunction::makeFromBoxedFunction<&call_on_cpu>());
}

}  // namespace cresset::gpu_simulator
