#include "frontend/trace_rules/saved_tensor_nodes.h"

#include <torch/csrc/autograd/python_cpp_function.h>
#include <torch/csrc/autograd/python_function.h>
#include <torch/csrc/utils/pybind.h>

#include <string_view>
#include <typeindex>
#include <unordered_map>

#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {
namespace {

bool shows_saved(PyTypeObject* type) {
  constexpr std::string_view kSaved = "_raw_saved_";
  for (const PyGetSetDef* entry = type->tp_getset; entry != nullptr && entry->name != nullptr; ++entry)
    if (std::string_view(entry->name).starts_with(kSaved)) return true;
  return false;
}

// The code of functions decorated with once_differentiable, which is the same for all.
PyObject* code_of_once() {
  static PyObject* const code = [] {
    const PyRef decorated = checked(PyObject_CallOneArg(
        module_attribute("torch.autograd.function", "once_differentiable"), module_attribute("builtins", "len")));
    return Py_NewRef(PyFunction_GET_CODE(decorated.get()));
  }();
  return code;
}

}  // namespace

bool is_differentiated_once(torch::autograd::Node& node) {
  const pybind11::gil_scoped_acquire gil;
  const PyRef shown = PyRef::steal(torch::autograd::functionToPyObject(node.getptr()));
  PyRef function = PyRef::steal(shown ? PyObject_GetAttrString(shown.get(), "_forward_cls") : nullptr);
  if (function) function = PyRef::steal(PyObject_GetAttrString(function.get(), "backward"));
  constexpr int kMost = 16;
  for (int depth = 0; function && PyFunction_Check(function.get()) && depth < kMost; ++depth) {
    if (PyFunction_GET_CODE(function.get()) == code_of_once()) return true;
    function = PyRef::steal(PyObject_GetAttrString(function.get(), "__wrapped__"));
  }
  PyErr_Clear();
  return false;
}

bool saves_tensors(torch::autograd::Node& node) {
  const pybind11::gil_scoped_acquire gil;
  static std::unordered_map<std::type_index, bool> known;
  if (const auto found = known.find(typeid(node)); found != known.end()) return found->second;
  const PyRef shown = PyRef::steal(torch::autograd::functionToPyObject(node.getptr()));
  if (!shown) return PyErr_Clear(), true;
  if (THPFunction_Check(shown.get())) return !((THPFunction*)shown.get())->saved_variables.empty();
  return known[typeid(node)] = shows_saved(Py_TYPE(shown.get()));
}

}  // namespace cresset::frontend
