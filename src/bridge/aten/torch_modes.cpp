#include "bridge/aten/torch_modes.h"

#include <ATen/Context.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <ATen/functorch/DynamicLayer.h>
#include <c10/core/AutogradState.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/forward_grad.h>

#include <atomic>

namespace cresset::bridge {

namespace {

// nullptr: torch has no CUDA, or has not used it yet.
const c10::impl::DeviceGuardImplInterface* cuda_in_use() {
  static std::atomic<const c10::impl::DeviceGuardImplInterface*> known{nullptr};
  if (const auto* cuda = known.load(std::memory_order_relaxed)) return cuda;
  const c10::impl::DeviceGuardImplInterface* const cuda =
      c10::impl::device_guard_impl_registry[static_cast<size_t>(c10::kCUDA)];
  if (cuda == nullptr) return nullptr;
  auto* const allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(c10::kCUDA));
  if (allocator == nullptr || !allocator->initialized()) return nullptr;
  known = cuda;
  return cuda;
}

constexpr int kFlash = 1, kEfficient = 2;  // bits of TorchModes::attention

}  // namespace

bool cuda_is_in_use() { return cuda_in_use() != nullptr; }

int8_t current_cuda_device() {
  const c10::impl::DeviceGuardImplInterface* const cuda = cuda_in_use();
  return cuda == nullptr ? int8_t{0} : cuda->getDevice().index();
}

TorchModes TorchModes::now() {
  TorchModes m;
  static const at::Context& context = at::globalContext();
  thread_local const c10::AutogradState& autograd = c10::AutogradState::get_tls_state();
  m.grad_mode = autograd.get_grad_mode();
  m.inference_mode = autograd.get_inference_mode();
  const c10::DispatchKeySet excluded = c10::impl::tls_local_dispatch_key_set().excluded_;
  m.autocast_cpu = !excluded.has(c10::DispatchKey::AutocastCPU);
  m.autocast_cuda = !excluded.has(c10::DispatchKey::AutocastCUDA);
  if (m.autocast_cpu) m.autocast_cpu_dtype = static_cast<int8_t>(at::autocast::get_autocast_dtype(at::kCPU));
  if (m.autocast_cuda) m.autocast_cuda_dtype = static_cast<int8_t>(at::autocast::get_autocast_dtype(at::kCUDA));
  m.default_dtype = static_cast<int8_t>(c10::get_default_dtype_as_scalartype());
  m.cuda_device = current_cuda_device();
  m.attention = static_cast<uint8_t>((context.userEnabledFlashSDP() ? kFlash : 0) |
                                     (context.userEnabledMemEfficientSDP() ? kEfficient : 0));
  m.deterministic = context.deterministicAlgorithms();
  m.deterministic_warns = context.deterministicAlgorithmsWarnOnly();
  m.autocast_depth = static_cast<int16_t>(at::autocast::increment_nesting() - 1);
  at::autocast::decrement_nesting();
  m.transforms = static_cast<uint16_t>(at::functorch::getDynamicLayerStack().size() * 2 +
                                       (torch::autograd::ForwardADLevel::try_get_by_idx(0) != nullptr ? 1 : 0));
  return m;
}

void TorchModes::set() const {
  const TorchModes was = now();
  if (was == *this) return;
  if (was.grad_mode != grad_mode) c10::GradMode::set_enabled(grad_mode);
  if (was.default_dtype != default_dtype)
    c10::set_default_dtype(c10::scalarTypeToTypeMeta(static_cast<c10::ScalarType>(default_dtype)));
  if (was.deterministic != deterministic || was.deterministic_warns != deterministic_warns)
    at::globalContext().setDeterministicAlgorithms(deterministic, deterministic_warns);
  if (was.attention != attention) {
    at::globalContext().setSDPUseFlash((attention & kFlash) != 0);
    at::globalContext().setSDPUseMemEfficient((attention & kEfficient) != 0);
  }
  const auto set_autocast = [](at::DeviceType device, bool enabled, int8_t dtype) {
    at::autocast::set_autocast_enabled(device, enabled);
    if (enabled) at::autocast::set_autocast_dtype(device, static_cast<at::ScalarType>(dtype));
  };
  set_autocast(at::kCPU, autocast_cpu, autocast_cpu_dtype);
  set_autocast(at::kCUDA, autocast_cuda, autocast_cuda_dtype);
  for (int depth = was.autocast_depth; depth < autocast_depth; ++depth) at::autocast::increment_nesting();
  for (int depth = was.autocast_depth; depth > autocast_depth; --depth) at::autocast::decrement_nesting();
}

std::string difference(const TorchModes& expected, const TorchModes& got) {
  if (expected == got) return {};
  if (expected.grad_mode != got.grad_mode) return got.grad_mode ? "grad mode is now on" : "grad mode is now off";
  if (expected.inference_mode != got.inference_mode) return "inference mode changed";
  if (expected.default_dtype != got.default_dtype) return "the default dtype changed";
  if (expected.transforms != got.transforms) return "the call is made inside a transform of torch.func";
  if (expected.attention != got.attention) return "the kernels that are allowed for attention changed";
  if (expected.cuda_device != got.cuda_device) return "the current CUDA device changed";
  const bool deterministic =
      expected.deterministic != got.deterministic || expected.deterministic_warns != got.deterministic_warns;
  return deterministic ? "torch.use_deterministic_algorithms changed" : "autocast changed";
}

bool python_modes_are_on() {
  return at::impl::PythonTorchFunctionTLS::stack_len() > 0 || c10::impl::TorchDispatchModeTLS::stack_len() > 0 ||
         !at::SavedTensorDefaultHooks::get_tls_state().stack.empty();
}

}  // namespace cresset::bridge
