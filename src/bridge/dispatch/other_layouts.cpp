#include "bridge/dispatch/other_layouts.h"

#include <torch/library.h>

#include "bridge/capture/eager_call.h"

namespace cresset::bridge {
namespace {

// Dispatch keys of backend kernels for other layouts, and their counterparts while capturing.
constexpr std::pair<c10::DispatchKey, c10::DispatchKey> kOtherLayouts[] = {
    {c10::DispatchKey::SparseCPU, c10::DispatchKey::SparsePrivateUse3},
    {c10::DispatchKey::SparseCsrCPU, c10::DispatchKey::SparseCsrPrivateUse3},
    {c10::DispatchKey::QuantizedCPU, c10::DispatchKey::QuantizedPrivateUse3},
    {c10::DispatchKey::NestedTensorCPU, c10::DispatchKey::NestedTensorPrivateUse3},
};

// Bypasses the kernels of the capture key, which treat tensors as strided.
void natively(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  Capture* const capture = Capture::current();
  if (capture == nullptr) return run_beside_capture(op, *stack);
  if (!capture->closed()) {
    capture->set_location();
    capture->flush(
        {BreakKind::UnsupportedLayout, op.operator_name().name + " of a sparse, quantized or nested tensor"});
  }
  run_natively(op, *capture, *stack);
}

}  // namespace

void install_other_layouts() {
  for (const auto& [own, ours] : kOtherLayouts)
    (new torch::Library(torch::Library::IMPL, "_", ours, __FILE__, __LINE__))  // lives as long as the dispatcher
        ->fallback(torch::CppFunction::makeFromBoxedFunction<&natively>());
}

void register_other_layouts(const c10::OperatorHandle& handle, std::deque<c10::RegistrationHandleRAII>& registrations) {
  if (!handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) &&
      !handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd))
    return;
  for (const auto& [own, ours] : kOtherLayouts)
    if (handle.hasKernelForDispatchKey(own))
      registrations.push_back(c10::Dispatcher::singleton().registerImpl(
          handle.operator_name(), ours, c10::KernelFunction::makeFromBoxedFunction<&natively>(), std::nullopt, nullptr,
          "cresset: capture"));
}

}  // namespace cresset::bridge
