#include "bridge/capture/eager_call.h"

#include <ATen/ScalarOps.h>

namespace cresset::bridge {
namespace {

using torch::jit::Stack;

// Calls f(at::Tensor&) for every tensor of a value and stores the changed tensors.
template <class F>
void change_tensors_of(c10::IValue& v, F&& f) {
  if (v.isTensor()) {
    at::Tensor t = v.toTensor();
    if (t.defined() && f(t)) v = t;
  } else if (v.isTensorList()) {
    c10::List<at::Tensor> list = v.toTensorList();
    for (size_t k = 0; k < list.size(); ++k) {
      at::Tensor t = list.get(k);
      if (t.defined() && f(t)) list.set(k, t);
    }
  } else if (v.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list = v.toOptionalTensorList();
    for (size_t k = 0; k < list.size(); ++k) {
      std::optional<at::Tensor> t = list.get(k);
      if (t && t->defined() && f(*t)) list.set(k, t);
    }
  } else if (v.isList() && v.toListRef().size() > 0 && v.toListRef()[0].isTensorList()) {
    for (const c10::IValue& inner : v.toListRef()) {
      c10::IValue list = inner;  // the same list
      change_tensors_of(list, f);
    }
  }
}

// The same for the stack's values from `first` on.
template <class F>
void change_tensors(Stack& stack, size_t first, F&& f) {
  for (size_t i = first; i < stack.size(); ++i) change_tensors_of(stack[i], f);
}

c10::IValue plain(const c10::IValue& v) {
  if (v.isSymInt()) return v.toSymInt().guard_int(__FILE__, __LINE__);
  if (v.isSymFloat()) return v.toSymFloat().guard_float(__FILE__, __LINE__);
  if (v.isSymBool()) return v.toSymBool().guard_bool(__FILE__, __LINE__);
  if (!v.isList() || v.isTensorList() || v.isOptionalTensorList()) return v;
  // A list made for symbols may hold only numbers: kernels without symbols require the other list type.
  const bool symbolic = v.isSymIntList() || std::any_of(v.toListRef().begin(), v.toListRef().end(),
                                                        [](const c10::IValue& e) { return e.isSymInt(); });
  if (!symbolic) return v;
  c10::List<int64_t> list;
  for (const c10::IValue& e : v.toListRef()) list.push_back(plain(e).toInt());
  return list;
}

at::Scalar plain_number(const at::Scalar& number) {
  if (number.isSymInt()) return number.toSymInt().guard_int(__FILE__, __LINE__);
  if (number.isSymFloat()) return number.toSymFloat().guard_float(__FILE__, __LINE__);
  return number;
}

std::function<std::optional<at::Scalar>(const at::Tensor&)> number_of;

}  // namespace

void set_symbolic_numbers(std::function<std::optional<at::Scalar>(const at::Tensor&)> of) { number_of = std::move(of); }

void run_natively(const c10::OperatorHandle& handle, Capture& capture, Stack& stack) {
  capture.rethrow_deferred();
  const size_t first = stack.size() - handle.schema().arguments().size();
  for (size_t i = first; i < stack.size(); ++i) stack[i] = plain(stack[i]);
  change_tensors(stack, first, [&](at::Tensor& t) {
    TORCH_CHECK(TraceTensor::from(t) == nullptr, "cresset: a tensor whose computation failed is used");
    if (!t.unsafeGetTensorImpl()->is_wrapped_number()) return false;
    const std::optional<at::Scalar> number = capture.client().symbolic_number(t);
    if (!number) return false;
    const Capture::StepAside aside;
    t = at::native::wrapped_scalar_tensor(plain_number(*number));
    return true;
  });
  const Capture::StepAside aside;
  handle.callBoxed(stack);
}

void run_beside_capture(const c10::OperatorHandle& handle, Stack& stack) {
  const size_t count = handle.schema().arguments().size();
  // The operator computes gradients of a captured computation (escaped_gradients.h).
  const bool on_purpose = c10::impl::tls_local_dispatch_key_set().included_.has(kTraceKey);
  for (size_t i = stack.size() - count; on_purpose && i < stack.size(); ++i) stack[i] = plain(stack[i]);
  // A tensor for a symbolic number has no contents; autograd may have saved it.
  if (on_purpose && number_of)
    change_tensors(stack, stack.size() - count, [](at::Tensor& t) {
      if (!t.unsafeGetTensorImpl()->is_wrapped_number()) return false;
      const std::optional<at::Scalar> number = number_of(t);
      if (!number) return false;
      const Capture::StepAside aside;
      t = at::native::wrapped_scalar_tensor(plain_number(*number));
      return true;
    });
  std::vector<std::pair<at::Tensor, at::Tensor>> replaced;  // alias, input proxy
  bool left_over = false;  // a proxy released since the dispatch is an ordinary tensor again
  change_tensors(stack, stack.size() - count, [&](at::Tensor& t) {
    at::Tensor alias = InputProxy::alias_of(t);
    if (!alias.defined()) return left_over = left_over || t.key_set().has(kTraceKey), false;
    replaced.emplace_back(alias, t);
    t = alias;
    return true;
  });
  const Capture::StepAside aside;
  TORCH_CHECK(on_purpose || !left_over, "cresset: a tensor that stood in during a capture was used after it, by ",
              handle.operator_name());
  handle.callBoxed(stack);
  change_tensors(stack, stack.size() - handle.schema().returns().size(), [&](at::Tensor& t) {
    for (const auto& [alias, input_proxy] : replaced)
      if (t.is_same(alias)) return t = input_proxy, true;
    return false;
  });
}

}  // namespace cresset::bridge
