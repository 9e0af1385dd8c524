#include "frontend/values/tensor_indices.h"

#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <utility>

#include "bridge/capture/capture.h"
#include "bridge/capture/sym_node.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/values/number_classes.h"

namespace cresset::frontend {
namespace {

// torch treats booleans and bytes as masks.
bool is_number_of_data(PyObject* index) {
  if (!is_exact_tensor(index)) return false;
  const at::Tensor& tensor = tensor_of(index);
  return tensor.dim() == 0 && at::isIntegralType(tensor.scalar_type(), false) && tensor.scalar_type() != at::kByte &&
         bridge::TraceTensor::from(tensor) != nullptr;
}

bool holds_number_of_data(PyObject* index) {
  if (!PySlice_Check(index)) return is_number_of_data(index);
  const auto* slice = (const PySliceObject*)index;
  return is_number_of_data(slice->start) || is_number_of_data(slice->stop);
}

PyRef number_of_data(bridge::Capture& capture, PyObject* index) {
  if (PySlice_Check(index)) {
    if (!holds_number_of_data(index)) return PyRef::borrow(index);
    const auto* slice = (const PySliceObject*)index;
    const PyRef start = number_of_data(capture, slice->start), stop = number_of_data(capture, slice->stop);
    return checked(PySlice_New(start.get(), stop.get(), slice->step));
  }
  if (!is_number_of_data(index)) return PyRef::borrow(index);
  bridge::TraceTensor& trace = *bridge::TraceTensor::from(tensor_of(index));
  if (trace.settled()) return PyRef::borrow(index);
  capture.set_location();
  // No decision inspects the number or its sign here, so the number needs no guard.
  const bool before = std::exchange(capture.symbolic_numbers, true);
  const bool as_guards = std::exchange(capture.specializes_input_scalars, false);
  const auto numbers = capture.recorder().symbolic_elements(capture.value_of(trace));
  capture.symbolic_numbers = before, capture.specializes_input_scalars = as_guards;
  if (!numbers || numbers->size() != 1) return PyRef::borrow(index);
  py::object number = py::cast(bridge::SymNode::make_int(capture.env_ptr(), numbers->front()));
  return PyRef::steal(adopt(number.release().ptr()));
}

}  // namespace

PyRef with_numbers_of_data(PyObject* key) {
  bridge::Capture* const capture = bridge::Capture::current();
  if (capture == nullptr || capture->closed()) return PyRef::borrow(key);
  if (!PyTuple_CheckExact(key)) return number_of_data(*capture, key);
  PyObject** const items = PySequence_Fast_ITEMS(key);
  const Py_ssize_t count = PyTuple_GET_SIZE(key);
  if (std::none_of(items, items + count, holds_number_of_data)) return PyRef::borrow(key);
  PyRef out = checked(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(out.get(), i, number_of_data(*capture, items[i]).release());
  return out;
}

}  // namespace cresset::frontend
