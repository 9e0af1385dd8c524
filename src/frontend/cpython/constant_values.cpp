#include "frontend/cpython/constant_values.h"

#include <torch/csrc/Device.h>

#include <cmath>

namespace cresset::frontend {

PyObject* any_input() {
  static PyObject* const mark = PyObject_CallNoArgs((PyObject*)&PyBaseObject_Type);
  return mark;
}

bool is_constant_of_rare_type(PyObject* object) {
  if (object == Py_Ellipsis || PyFloat_CheckExact(object) || PyComplex_CheckExact(object) ||
      PyBytes_CheckExact(object) || THPDevice_Check(object))
    return true;
  if (!PyTuple_CheckExact(object)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (!is_constant_value(PyTuple_GET_ITEM(object, i))) return false;
  return true;
}

bool same_constant(PyObject* expected, PyObject* got) {
  if (expected == got || expected == any_input()) return true;
  if (Py_TYPE(expected) != Py_TYPE(got)) return false;
  if (PyFloat_CheckExact(got)) {
    const double a = PyFloat_AS_DOUBLE(expected), b = PyFloat_AS_DOUBLE(got);
    return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b);
  }
  if (PyTuple_CheckExact(got)) {
    if (PyTuple_GET_SIZE(expected) != PyTuple_GET_SIZE(got)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(got); ++i)
      if (!same_constant(PyTuple_GET_ITEM(expected, i), PyTuple_GET_ITEM(got, i))) return false;
    return true;
  }
  if (!is_constant_value(expected)) return false;
  return PyObject_RichCompareBool(expected, got, Py_EQ) == 1;  // exact C types: cannot raise
}

}  // namespace cresset::frontend
