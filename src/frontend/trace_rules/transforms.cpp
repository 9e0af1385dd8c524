#include "frontend/trace_rules/transforms.h"

#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/TensorWrapper.h>
#include <c10/core/AutogradState.h>

#include <algorithm>
#include <string_view>

#include "frontend/cpython/py_objects.h"
#include "frontend/trace_rules/special_cases.h"

namespace cresset::frontend {
namespace {

// Gives access to protected members: torch has no public function to remove symbolic sizes from a wrapper.
class Sizes final : public c10::TensorImpl {
 public:
  using c10::TensorImpl::TensorImpl;
  void replace(c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t offset) {
    has_symbolic_sizes_strides_ = false;
    refresh_sizes_strides_policy();
    const bool allowed = allow_tensor_metadata_change();
    set_allow_tensor_metadata_change(true);
    set_sizes_and_strides(sizes, strides, offset);
    set_allow_tensor_metadata_change(allowed);
  }
};

// The wrapped tensor and its hidden batch dimension; -1: none.
std::pair<at::Tensor, int64_t> inside_of(const at::Tensor& tensor) {
  if (const auto* batched = at::functorch::maybeGetBatchedImpl(tensor)) return {batched->value(), batched->bdim()};
  if (const auto* wrapper = at::functorch::maybeGetTensorWrapper(tensor)) return {wrapper->value(), -1};
  return {};
}

void settle(const at::Tensor& tensor) {
  if (const at::Tensor& tangent = tensor._fw_grad(0); tangent.defined()) settle(tangent);  // Python may not hold it
  const auto [inside, hidden] = inside_of(tensor);
  if (!inside.defined()) return;
  settle(inside);
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (!impl->has_symbolic_sizes_strides() || inside.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return;
  std::vector<int64_t> sizes = inside.sizes().vec(), strides = inside.strides().vec();
  if (hidden >= 0) {
    sizes.erase(sizes.begin() + hidden);
    strides.erase(strides.begin() + hidden);
  }
  static_cast<Sizes*>(impl)->replace(sizes, strides, inside.storage_offset());
}

// torch's errors when plain sizes are requested from a wrapper with symbolic sizes. Most are failed internal assertions
// in later code.
bool asks_for_plain_sizes(std::string_view message) {
  static constexpr std::string_view kWords[] = {
      "on tensor with symbolic sizes/strides",      "dispatch_on_subclass called with NO overloaded args",
      "expected to contain only concrete integers", "cannot access PyObject for Tensor - no interpreter set",
      "Expected IntList but got GenericList",       "Expected Int but got SymInt",
      "isIntList() INTERNAL ASSERT FAILED",         "isInt() INTERNAL ASSERT FAILED"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view words) { return message.find(words) != std::string_view::npos; });
}

}  // namespace

bool lacks_plain_sizes() {
  if (PyErr_ExceptionMatches(PyExc_RuntimeError) == 0) return false;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const PyRef text = PyRef::steal(PyObject_Str(value));
  const char* message = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  const bool lacks = message != nullptr && asks_for_plain_sizes(message);
  PyErr_Restore(type, value, trace);
  return lacks;
}

void settle_wrappers() {
  static PyObject* const get_objects = module_attribute("gc", "get_objects");
  const PyRef found = PyCallable_Check(get_objects) != 0  // unless the user has replaced the function
                          ? PyRef::borrow(get_objects)
                          : checked(PyObject_GetAttrString(import_module("gc").get(), "get_objects"));
  const PyRef objects = checked(PyObject_CallNoArgs(found.get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(objects.get()); ++i) {
    PyObject* object = PyList_GET_ITEM(objects.get(), i);
    if (is_tensor(object) && tensor_of(object).defined()) settle(tensor_of(object));  // runs no code of the objects
  }
}

PyRef run_on_wrappers(bridge::Capture& capture, const std::function<PyRef()>& run,
                      const std::function<PyRef()>& run_plainly) {
  PyRef value = run();
  if (value || !lacks_plain_sizes()) return value;
  PyErr_Clear();
  capture.flush({BreakKind::AutogradFeature, "an operator that asks for plain sizes inside of a transform"});
  return run_plainly();
}

PyRef call_on_wrappers(bridge::Capture& capture, const CressetCall& call) {
  const auto with = [&](PyObject* const* args) {
    return PyRef::steal(PyObject_Vectorcall(call.callable, args, static_cast<size_t>(call.nargs), call.kwnames));
  };
  const auto as_it_is = [&] {
    try {
      PyRef value = with_numbers_it_takes(call);
      return value ? std::move(value) : with(call.args);
    } catch (const PythonError&) {
      return PyRef();
    }
  };
  return run_on_wrappers(capture, as_it_is, [&] { return with(PlainArguments(call).data()); });
}

bool is_first_tangent(PyObject* into, PyObject* value) {
  if (!c10::AutogradState::get_tls_state().get_fw_grad_mode() || !is_tensor(into) || !is_tensor(value)) return false;
  const auto has_tangent = [](PyObject* tensor) { return tensor_of(tensor)._fw_grad(/*level=*/0).defined(); };
  return has_tangent(value) && !has_tangent(into);
}

int changes_level(std::string_view name) {
  if (!name.starts_with('_')) return 0;
  if (name == "_enter_dual_level" || name == "_jvp_increment_nesting") return 1;
  return name == "_exit_dual_level" || name == "_jvp_decrement_nesting" ? -1 : 0;
}

bool begins_batching(const char* name) {
  return name != nullptr && name[0] == '_' && std::string_view(name) == "_vmap_increment_nesting";
}

bool keeps_sizes(const char* name) {
  static constexpr std::string_view kNames[] = {"masked_select", "block_diag"};
  if (name == nullptr || std::find(std::begin(kNames), std::end(kNames), std::string_view(name)) == std::end(kNames))
    return false;
  const auto& layers = at::functorch::getDynamicLayerStack();
  return std::any_of(layers.begin(), layers.end(),
                     [](const auto& layer) { return layer.key() == at::functorch::TransformType::Grad; });
}

bool is_operator_on_wrappers(const char* name, const CressetCall& call) {
  if (!inside_transform() || operators_call_python() || name == nullptr) return false;
  if (name[0] == '_' || std::string_view(name) == "run_backward") return false;
  return std::any_of(call.args, call.args + call.nargs, is_exact_tensor);
}

}  // namespace cresset::frontend
