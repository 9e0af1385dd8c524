#include "bridge/dispatch/capture_kernel.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <atomic>
#include <deque>
#include <mutex>

#include "bridge/aten/autograd_history.h"
#include "bridge/aten/described_traits.h"
#include "bridge/aten/overloads.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/eager_call.h"
#include "bridge/capture/rng_state.h"
#include "bridge/capture/sym_node.h"
#include "bridge/decompositions/composites.h"
#include "bridge/decompositions/derivative_formulas.h"
#include "bridge/decompositions/gpu_attention.h"
#include "bridge/decompositions/random_fills.h"
#include "bridge/decompositions/recurrent_layers.h"
#include "bridge/decompositions/recurrent_steps.h"
#include "bridge/dispatch/capture_call.h"
#include "bridge/dispatch/other_layouts.h"
#include "ops/library_traits.h"
#include "ops/op_def.h"

namespace cresset::bridge {
namespace {

using torch::jit::Stack;

sym::Reason reason_now() {
  sym::Reason reason;
  const OpEntry* op = CaptureCall::current_op();
  if (op != nullptr) reason.op = op->name;
  Capture* capture = Capture::current();
  if (capture != nullptr && capture->closed()) return reason;
  if (capture != nullptr && op == nullptr) capture->set_location();
  if (capture != nullptr) reason.location = capture->graph().locations[capture->graph().current_location];
  return reason;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

class CaptureKernel final : public c10::OperatorKernel {
 public:
  explicit CaptureKernel(const c10::OperatorHandle& handle) : handle_(handle) {}

  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
    Capture* capture = Capture::current();
    if (capture == nullptr) return run_beside_capture(handle_, *stack);
    if (capture->closed()) return run_natively(handle_, *capture, *stack);
    std::call_once(classified_, [&] { entry_ = std::make_unique<OpEntry>(classify(handle_)); });
    capture->set_location();
    if (entry_->foreign) return run_between_segments(*capture, *stack);
    // Operators on lists of tensors: ATen's CPU kernel handles the tensors in turn, by operators which arrive here.
    if (is_of_lists(*stack)) return handle_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    try {
      const CaptureCosts::Clock clock(capture->counters.costs, entry_->name);
      return CaptureCall(*entry_, *capture, *stack).run();
    } catch (const InternalError&) {
      throw;
    } catch (const CaptureAbort& e) {
      // Autograd regenerates views of the caller's tensors: they do not belong to the program.
      if (capture->says_history() && is_of_real_tensors(*stack)) return run_natively(handle_, *capture, *stack);
      const Copies written = written_copies(*stack);
      capture->flush(e.reason());
      require_written(written, *stack);
    } catch (const std::exception& e) {
      // Most likely the arguments are invalid: the operator itself raises its own message.
      capture->arguments_did_not_fit = true;
      capture->flush({BreakKind::InvalidArguments, entry_->name + " was not accepted: " + first_line(e.what())});
    }
    run_natively(handle_, *capture, *stack);
  }

 private:
  void run_between_segments(Capture& capture, Stack& stack) const {
    capture.flush(
        {BreakKind::UntraceableFunction, entry_->name + ", which works with objects or processes that no program has"});
    run_natively(handle_, capture, stack);
  }

  bool is_of_real_tensors(const Stack& stack) const {
    return std::all_of(stack.end() - static_cast<long>(entry_->arg_types.size()), stack.end(),
                       [](const c10::IValue& v) {
                         return !v.isTensorList() && (!v.isTensor() || TraceTensor::from(v.toTensor()) == nullptr);
                       });
  }

  // The written tensors with the tensors that they are views of. The end of the segment makes other views of those
  // which eager mode has as views (possible_views.cpp), and autograd has permitted the write before.
  using Copies = std::vector<std::pair<at::Tensor, at::Tensor>>;
  static at::Tensor base_of(const at::Tensor& t) { return is_recorded_view(t) ? at::Tensor(t._base()) : at::Tensor(); }

  Copies written_copies(const Stack& stack) const {
    Copies out;
    const auto& arguments = handle_.schema().arguments();
    for (size_t i = 0; c10::GradMode::is_enabled() && i < arguments.size(); ++i) {
      const c10::IValue& v = stack[stack.size() - arguments.size() + i];
      if (arguments[i].alias_info() == nullptr || !arguments[i].alias_info()->isWrite() || !v.isTensor()) continue;
      if (v.toTensor().defined()) out.emplace_back(v.toTensor(), base_of(v.toTensor()));
    }
    return out;
  }

  void require_written(const Copies& copies, const Stack& stack) const {
    const bool wanted = std::any_of(stack.end() - static_cast<long>(entry_->arg_types.size()), stack.end(),
                                    [](const c10::IValue& v) { return v.isTensor() && v.toTensor().requires_grad(); });
    for (const auto& [t, base] : copies)
      if (wanted && is_recorded_view(t) && !base_of(t).is_same(base)) require_rebase(t);
  }

  bool is_of_lists(const Stack& stack) const {
    if (!std::string_view(entry_->name).starts_with("aten::_foreach_")) return false;
    const auto arguments = stack.end() - static_cast<long>(entry_->arg_types.size());
    const auto list = std::find_if(arguments, stack.end(), [](const c10::IValue& v) { return v.isTensorList(); });
    return list != stack.end() && list->toTensorList().size() > 0 && !list->toTensorList().get(0).is_meta() &&
           handle_.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
  }

  c10::OperatorHandle handle_;
  std::once_flag classified_;
  std::unique_ptr<OpEntry> entry_;
};

// Without autograd's keys (inference mode) a recurrent layer arrives here first.
class LayerKernel final : public c10::OperatorKernel {
 public:
  explicit LayerKernel(const c10::OperatorHandle& handle) : whole_(handle) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    if (!is_kept_whole(op, *stack)) return run_in_steps(op, *stack);
    whole_(op, keys, stack);
  }

 private:
  CaptureKernel whole_;
};

// Registered operators without the kernel. The dispatcher calls listeners under its own lock, so install_pending()
// registers the kernel later.
class Registry : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle& handle) override {
    std::lock_guard lock(mutex_);
    pending_.push_back(handle);
    any_pending_ = true;
  }
  void onOperatorDeregistered(const c10::OperatorHandle& handle) override {
    std::lock_guard lock(mutex_);
    std::erase_if(pending_, [&](const c10::OperatorHandle& p) { return p.operator_name() == handle.operator_name(); });
  }

  void install_pending() {
    if (!any_pending_.load(std::memory_order_acquire)) return;
    std::lock_guard installing(install_mutex_);
    std::vector<c10::OperatorHandle> todo;
    {
      std::lock_guard lock(mutex_);
      todo.swap(pending_);
      any_pending_ = false;
    }
    for (const c10::OperatorHandle& handle : todo) install(handle);
  }

 private:
  void install(const c10::OperatorHandle& handle) {
    if (!handle.hasSchema()) return;
    const c10::OperatorName& name = handle.operator_name();
    const bool layer = is_recurrent_layer(name);
    if (handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) && !layer) return;
    if (handle.hasKernelForDispatchKey(kTraceKey)) return;
    const std::string ns = name.name.substr(0, name.name.find("::"));
    if (ns == "profiler" || ns == "_caffe2") return;
    auto kernel = layer ? c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<LayerKernel>(handle))
                        : c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<CaptureKernel>(handle));
    // Without torch::Library, which would parse the name again: half of the total time.
    registrations_.push_back(c10::Dispatcher::singleton().registerImpl(name, kTraceKey, std::move(kernel), std::nullopt,
                                                                       nullptr, "cresset: capture"));
    register_other_layouts(handle, registrations_);
  }

  std::mutex mutex_, install_mutex_;
  std::atomic<bool> any_pending_{false};
  std::vector<c10::OperatorHandle> pending_;
  std::deque<c10::RegistrationHandleRAII> registrations_;  // their destruction would remove the kernels
};

}  // namespace

namespace {

Registry& registry() {
  static Registry* const one = [] {
    install_symbolic_composites();
    install_derivative_formulas();
    // torch gives its own backends' autograd keys a fallback. Without a fallback, operators without an autograd kernel
    // (most custom operators) would have nothing to run on a trace tensor.
    static torch::Library autograd(torch::Library::IMPL, "_", c10::DispatchKey::AutogradPrivateUse3, __FILE__,
                                   __LINE__);
    autograd.fallback(torch::autograd::basicAutogradNotImplementedFallback());
    install_other_layouts();
    auto* made = new Registry;  // lives as long as the dispatcher
    // The registration handle is leaked on purpose, because its destruction would unregister the listener.
    new c10::RegistrationHandleRAII(
        c10::Dispatcher::singleton().addRegistrationListener(std::unique_ptr<c10::OpRegistrationListener>(made)));
    return made;
  }();
  return *one;
}

}  // namespace

void register_capture_kernels() {
  watch_overloads();
  registry().install_pending();
}

void install_capture_kernels() {
  static std::once_flag once;
  std::call_once(once, [] {
    set_reason_provider(&reason_now);
    ops::library_traits().described = &described_traits;
    watch_default_generator();
    register_random_fills();
    register_recurrent_steps();
    register_gpu_attention();
    static_cast<void>(ops::all());  // their rules
  });
  register_capture_kernels();
}

}  // namespace cresset::bridge
