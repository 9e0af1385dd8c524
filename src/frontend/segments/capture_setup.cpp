#include "frontend/segments/capture_setup.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include <chrono>

#include "bridge/autograd/leaf_groups.h"
#include "bridge/capture/eager_call.h"
#include "bridge/capture/symbolic_float.h"
#include "bridge/dispatch/capture_kernel.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/cpython/stats.h"
#include "frontend/eval/binders.h"
#include "frontend/trace_rules/saved_tensor_nodes.h"
#include "frontend/values/symbols.h"
#include "frontend/values/torch_function_lookup.h"

namespace cresset::frontend {

std::optional<at::Scalar> symbolic_number(const at::Tensor& tensor) {
  const py::gil_scoped_acquire gil;
  PyRef python = PyRef::steal(THPVariable_Wrap(tensor));
  if (!python) return PyErr_Clear(), std::nullopt;
  static PyObject* const name = PyUnicode_InternFromString("_wrapped_number");
  PyObject* found = nullptr;  // most tensors lack it: avoid creating an unread error
#if PY_VERSION_HEX >= 0x030D0000
  if (PyObject_GetOptionalAttr(python.get(), name, &found) < 0) PyErr_Clear();
#else
  if (_PyObject_LookupAttr(python.get(), name, &found) < 0) PyErr_Clear();
#endif
  const PyRef number = PyRef::steal(found);
  if (!number) return std::nullopt;
  const py::handle handle(number.get());
  if (is_symint(number.get())) return py::cast<c10::SymInt>(handle);
  if (is_symfloat(number.get())) return c10::SymFloat(node_of(number.get()));
  if (is_symbool(number.get())) return py::cast<c10::SymBool>(handle).guard_bool(__FILE__, __LINE__);
  return std::nullopt;
}

// Classes of torch._ops with lazily bound attributes. The library's attributes are the same for every first reader.
static bool find_binders() {
  const PyRef ops = import_module("torch._ops"),
              caches = PyRef::borrow(module_attribute("functools", "cached_property"));
  for (const char* name :
       {"_Ops", "_OpNamespace", "_HigherOrderNamespace", "OpOverloadPacket", "OpOverload", "TorchBindOpOverload"}) {
    const PyRef type = PyRef::steal(PyObject_GetAttrString(ops.get(), name));
    if (!type || !PyType_Check(type.get())) {
      PyErr_Clear();
      continue;
    }
    cresset_eval_binds_names((PyTypeObject*)type.get(), (PyTypeObject*)caches.get());
  }
  return true;
}

void set_up_capturing() {
  const auto begin = std::chrono::steady_clock::now();
  bridge::install_capture_kernels();
  bridge::set_unwrapper([](const c10::SymNode& node) {
    const auto* python = dynamic_cast<torch::impl::PythonSymNodeImpl*>(node.get());
    if (python == nullptr) return node;
    const py::gil_scoped_acquire gil;
    const py::handle inner = python->getPyObj();
    return py::isinstance<c10::SymNodeImpl>(inner) ? py::cast<c10::SymNode>(inner) : node;
  });
  bridge::set_symbolic_numbers(&symbolic_number);
  bridge::holds_tensors = &saves_tensors;
  bridge::is_differentiated_once = &is_differentiated_once;
  answer_torch_function_quickly();
  static const bool found = [] {  // once, under the GIL
    find_binders();
    checked(PyObject_CallMethod(import_module(python_names::kAutograd).get(), "find_operators", nullptr));
    return true;
  }();
  static_cast<void>(found);
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  live_totals().ms_setup += taken.count();
}

}  // namespace cresset::frontend
