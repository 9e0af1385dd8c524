#include "frontend/values/wrapper_tensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/tensor_dtypes.h>

#include "bridge/capture/capture.h"
#include "bridge/capture/input_proxy.h"
#include "bridge/capture/sym_node.h"
#include "frontend/cpython/errors.h"
#include "frontend/cpython/not_evaluated.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/values/number_classes.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {
namespace {

PyRef numbers_of(c10::SymIntArrayRef values) {
  std::vector<PyRef> out;
  for (const c10::SymInt& value : values) out.push_back(PyRef::steal(adopt(py::cast(value).release().ptr())));
  return tuple_of(out);
}

bool is_sequence(PyObject* object) { return PyTuple_Check(object) || PyList_Check(object); }

std::vector<c10::SymInt> symbols_of(PyObject* tuple) {
  std::vector<c10::SymInt> out;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    out.push_back(py::cast<c10::SymInt>(py::handle(PyTuple_GET_ITEM(tuple, i))));
  return out;
}

// The values in this call. The wrapper gets them when the capture is over; they are not guarded.
PyRef numbers_now(PyObject* sequence) {
  std::vector<PyRef> out;
  for (const c10::SymInt& value : symbols_of(checked(PySequence_Tuple(sequence)).get())) {
    const auto* node =
        value.is_heap_allocated() ? dynamic_cast<bridge::SymNode*>(value.toSymNodeImplUnowned()) : nullptr;
    const std::optional<int64_t> hint = node != nullptr ? node->env()->hint(node->expr()) : std::nullopt;
    out.push_back(checked(PyLong_FromLongLong(hint ? *hint : value.guard_int(__FILE__, __LINE__))));
  }
  return tuple_of(out);
}

PyObject* original() {
  static PyObject* const function = module_attribute("torch._C", "TensorBase");
  static PyObject* const make = checked(PyObject_GetAttrString(function, "_make_wrapper_subclass")).release();
  return make;
}

}  // namespace

bool is_wrapper(PyObject* object) {
  return is_tensor(object) && tensor_of(object).defined() && bridge::InputProxy::possible_wrapper(tensor_of(object));
}

ObjectLayout layout_of_wrapper(PyObject* wrapper) {
  const at::Tensor& tensor = tensor_of(wrapper);
  ObjectLayout out{ObjectLayout::Kind::Wrapper, {}, {}};
  out.parts = {numbers_of(tensor.sym_sizes()), numbers_of(tensor.sym_strides()),
               PyRef::steal(adopt(py::cast(tensor.sym_storage_offset()).release().ptr()))};
  std::vector<PyRef> names;
  PyObject* const dict = instance_dict(wrapper);
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (dict != nullptr && PyDict_Next(dict, &position, &key, &value)) {
    names.push_back(PyRef::borrow(key));
    out.parts.push_back(PyRef::borrow(value));
  }
  const PyRef device = checked(PyUnicode_FromString(tensor.device().str().c_str()));
  out.form = checked(PyTuple_Pack(5, (PyObject*)Py_TYPE(wrapper), tuple_of(names).get(),
                                  (PyObject*)torch::getTHPDtype(tensor.scalar_type()), device.get(),
                                  tensor.requires_grad() ? Py_True : Py_False));
  return out;
}

PyRef make_wrapper(const ObjectLayout& layout) {
  const PyRef args = checked(PyTuple_Pack(2, form_item(layout, 0), layout.parts[0].get()));
  const PyRef named = checked(Py_BuildValue("{sOsOsOsOsO}", "strides", layout.parts[1].get(), "storage_offset",
                                            layout.parts[2].get(), "dtype", form_item(layout, 2), "device",
                                            form_item(layout, 3), "requires_grad", form_item(layout, 4)));
  PyRef made = checked(PyObject_Call(original(), args.get(), named.get()));
  PyObject* const names = form_item(layout, 1);
  const PyRef dict = checked(PyObject_GenericGetDict(made.get(), nullptr));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i)
    if (PyDict_SetItem(dict.get(), PyTuple_GET_ITEM(names, i),
                       layout.parts[kWrapperNumbers + static_cast<size_t>(i)].get()) < 0)
      throw PythonError{};
  return made;
}

// Creates the proxy tensor in C++: a proxy tensor visible to Python would count as held by the program.
void give_sizes(PyObject* wrapper, PyObject* sizes, PyObject* strides) {
  const at::Tensor& tensor = tensor_of(wrapper);
  const std::vector<c10::SymInt> values = symbols_of(sizes);
  bridge::Capture::current()->add_wrapper(
      tensor, strides == nullptr ? at::empty_symint(values, tensor.options())
                                 : at::empty_strided_symint(values, symbols_of(strides), tensor.options()));
}

PyObject* make_wrapper_of_call(PyObject*, PyObject* args) {
  HANDLE_TH_ERRORS
  PyObject *type, *size, *named;
  if (PyArg_ParseTuple(args, "OOO!", &type, &size, &PyDict_Type, &named) == 0) return nullptr;
  const NotEvaluated own_business;
  try {
    const PyRef plain = checked(PyTuple_Pack(2, type, numbers_now(size).get()));
    const PyRef names = checked(PyDict_New());
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(named, &position, &key, &value))
      if (PyDict_SetItem(names.get(), key,
                         (is_sequence(value) ? numbers_now(value) : without_symbols(PyRef::borrow(value))).get()) < 0)
        throw PythonError{};
    PyRef made = checked(PyObject_Call(original(), plain.get(), names.get()));
    const bridge::Capture* const capture = bridge::Capture::current();
    const auto given = [&](const char* name) {
      PyObject* const found = PyDict_GetItemString(named, name);
      return found != Py_None ? found : nullptr;
    };
    const bool plainly = given("memory_format") == nullptr && given("dispatch_sizes_strides_policy") == nullptr;
    if (plainly && capture != nullptr && !capture->closed() && is_wrapper(made.get())) {
      PyObject* const strides = given("strides");
      give_sizes(made.get(), checked(PySequence_Tuple(size)).get(),
                 strides != nullptr ? checked(PySequence_Tuple(strides)).get() : nullptr);
    }
    return made.release();
  } catch (const PythonError&) {
    return nullptr;
  }
  END_HANDLE_TH_ERRORS
}

}  // namespace cresset::frontend
