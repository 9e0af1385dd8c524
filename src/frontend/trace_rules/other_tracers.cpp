#include "frontend/trace_rules/other_tracers.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <algorithm>
#include <string_view>

#include "frontend/cpython/code_origin.h"
#include "frontend/cpython/items.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/trace_rules/transforms.h"

namespace cresset::frontend {
namespace {

// Dispatch keys, without backends, that a thread may include when no tracer is active. These are the default keys, the
// keys of autocast and autograd, and a backend's own keys, which cresset's captures add.
uint64_t unobserved() {
  static const uint64_t keys = (c10::default_included_set | c10::autocast_dispatch_keyset |
                                c10::autograd_dispatch_keyset | c10::DispatchKeySet(c10::DispatchKey::Dense))
                                   .raw_repr() |
                               c10::full_backend_mask;
  return keys;
}

bool is_tracer_proxy(PyObject* object, int depth) {
  if (is_tensor(object)) {
    const at::Tensor& tensor = tensor_of(object);
    if (!tensor.defined()) return false;
    const c10::DispatchKeySet keys = tensor.key_set();
    // a class attribute which torch's modes set
    static PyObject* const of_mode = PyUnicode_InternFromString("_mode_key");
    if (keys.has(c10::DispatchKey::Python) && _PyType_Lookup(Py_TYPE(object), of_mode) != nullptr) return true;
    return keys.has(c10::DispatchKey::Meta) || keys.has(c10::DispatchKey::Functionalize) ||
           keys.has(c10::DispatchKey::FuncTorchBatched) || keys.has(c10::DispatchKey::FuncTorchGradWrapper);
  }
  constexpr int kDeep = 4;
  if (depth == kDeep) return false;
  if (PyTuple_Check(object) || PyList_Check(object)) {
    PyObject* const* const items = PySequence_Fast_ITEMS(object);
    return std::any_of(items, items + PySequence_Fast_GET_SIZE(object),
                       [&](PyObject* item) { return is_tracer_proxy(item, depth + 1); });
  }
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Check(object) && PyDict_Next(object, &at, &key, &value) != 0;)
    if (is_tracer_proxy(value, depth + 1)) return true;
  return false;
}

}  // namespace

// Every tracer includes a dispatch key for its kernels in the thread's set: Tracer, Python, PreDispatch, Functionalize,
// or the keys of torch.func's levels.
bool traced_by_others() {
  const uint64_t included = c10::impl::tls_local_dispatch_key_set().included_.raw_repr();
  return (included & ~unobserved()) != 0 || c10::impl::TorchDispatchModeTLS::any_modes_set();
}

bool hold_tracer_proxies(PyObject* args, PyObject* kwargs) {
  return is_tracer_proxy(args, 0) || is_tracer_proxy(kwargs, 0);
}

bool left_to_others(PyObject* frames, PyObject* value) {
  return (traced_by_others() && !inside_transform()) || hold_tracer_proxies(frames, value);
}

namespace {

PyObject* mode_key() {
  static PyObject* const name = PyUnicode_InternFromString("_mode_key");
  return name;
}

bool is_dispatch_mode(PyObject* object) {
  static PyObject* const modes = module_attribute("torch.utils._python_dispatch", "TorchDispatchMode");
  return PyObject_TypeCheck(object, (PyTypeObject*)modes) != 0;
}

// A mode that torch has one of: fake tensors, functionalization, tracing into a graph.
bool is_mode_of_tracer(PyObject* object) {
  if (!is_dispatch_mode(object)) return false;
  const PyRef key = PyRef::steal(PyObject_GetAttr(object, mode_key()));
  if (!key) PyErr_Clear();
  return key && key.get() != Py_None;
}

bool holds_tensor(PyObject* object, int depth) {
  if (is_tensor(object)) return true;
  if (depth == 0 || (!PyTuple_Check(object) && !PyList_Check(object))) return false;
  PyObject* const* const items = PySequence_Fast_ITEMS(object);
  return std::any_of(items, items + PySequence_Fast_GET_SIZE(object),
                     [&](PyObject* item) { return holds_tensor(item, depth - 1); });
}

// Whether the file is in a torch folder that contains tracers. Decorators in `_export/wrappers.py` run in programs
// which nobody exports. Modules made of exported programs run functions of the first files here.
bool is_of_tracers(std::string_view file) {
  for (const std::string_view of_modules : {"export/_unlift.py", "export/unflatten.py", "export/_tree_utils.py"})
    if (file == of_modules) return false;
  for (const std::string_view folder : {"export/", "_export/__init__.py", "_export/converter.py", "onnx/",
                                        "jit/_trace.py", "fx/experimental/proxy_tensor"})
    if (file.starts_with(folder)) return true;
  return false;
}

}  // namespace

bool is_tracer(PyObject* callee, const CressetCall& call) {
  PyObject* const function = PyMethod_Check(callee) ? PyMethod_GET_FUNCTION(callee) : callee;
  if (!PyFunction_Check(function)) return false;
  const std::string_view file = path_in_torch(((PyCodeObject*)PyFunction_GET_CODE(function))->co_filename);
  if (file.empty()) return false;
  PyObject* const* const end = call.args + cresset_count_arguments(&call);
  if (is_of_tracers(file)) return std::any_of(call.args, end, [](PyObject* o) { return holds_tensor(o, 2); });
  if (!file.starts_with("_subclasses/")) return false;
  // A mode that is being made has no key yet.
  if (PyMethod_Check(callee) && is_dispatch_mode(PyMethod_GET_SELF(callee))) return true;
  return std::any_of(call.args, end, is_dispatch_mode);
}

bool switches_tracer(const char* called, const CressetCall& call) {
  const std::string_view name = called;
  if (!name.starts_with('_')) return false;
  if (name == "_dispatch_tls_set_dispatch_key_included" || name == "_enable_functionalization") return true;
  if (name != "_push_on_torch_dispatch_stack" && name != "_set_dispatch_mode") return false;
  return call.nargs > 0 && is_mode_of_tracer(call.args[0]);
}

bool is_of_tracer_proxies(const CressetCall& call) {
  return std::any_of(call.args, call.args + cresset_count_arguments(&call), [](PyObject* object) {
    return is_tensor(object) && !is_exact_tensor(object) && _PyType_Lookup(Py_TYPE(object), mode_key()) != nullptr;
  });
}

}  // namespace cresset::frontend
