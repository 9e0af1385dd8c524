#include "frontend/other_tracers.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <algorithm>

#include "frontend/py_objects.h"
#include "frontend/transforms.h"

namespace cresset::frontend {
namespace {

// Functionalities, without backends, that a thread may include though nobody looks: those by default, autocast's and
// autograd's, and a backend's own, as a capture of ours adds them.
uint64_t unobserved() {
  static const uint64_t keys = (c10::default_included_set | c10::autocast_dispatch_keyset |
                                c10::autograd_dispatch_keyset | c10::DispatchKeySet(c10::DispatchKey::Dense))
                                   .raw_repr() |
                               c10::full_backend_mask;
  return keys;
}

bool is_stand_in(PyObject* object, int depth) {
  if (is_tensor(object)) {
    const at::Tensor& tensor = tensor_of(object);
    if (!tensor.defined()) return false;
    const c10::DispatchKeySet keys = tensor.key_set();
    static PyObject* const of_mode = PyUnicode_InternFromString("_mode_key");  // a class of torch's that a mode makes
    if (keys.has(c10::DispatchKey::Python) && _PyType_Lookup(Py_TYPE(object), of_mode) != nullptr) return true;
    return keys.has(c10::DispatchKey::Meta) || keys.has(c10::DispatchKey::Functionalize) ||
           keys.has(c10::DispatchKey::FuncTorchBatched) || keys.has(c10::DispatchKey::FuncTorchGradWrapper);
  }
  constexpr int kDeep = 4;
  if (depth == kDeep) return false;
  if (PyTuple_Check(object) || PyList_Check(object)) {
    PyObject* const* const items = PySequence_Fast_ITEMS(object);
    return std::any_of(items, items + PySequence_Fast_GET_SIZE(object),
                       [&](PyObject* item) { return is_stand_in(item, depth + 1); });
  }
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Check(object) && PyDict_Next(object, &at, &key, &value) != 0;)
    if (is_stand_in(value, depth + 1)) return true;
  return false;
}

}  // namespace

// By what tracers have in common: each puts a key into the thread's set (Tracer, Python, PreDispatch, Functionalize,
// those of torch.func's levels), for which it has kernels.
bool traced_by_others() {
  const uint64_t included = c10::impl::tls_local_dispatch_key_set().included_.raw_repr();
  return (included & ~unobserved()) != 0 || c10::impl::TorchDispatchModeTLS::any_modes_set();
}

bool hold_stand_ins(PyObject* args, PyObject* kwargs) { return is_stand_in(args, 0) || is_stand_in(kwargs, 0); }

bool left_to_others(PyObject* frames, PyObject* value) {
  return (traced_by_others() && !inside_transform()) || hold_stand_ins(frames, value);
}

}  // namespace cresset::frontend
