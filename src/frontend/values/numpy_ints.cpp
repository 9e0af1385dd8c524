#include "frontend/values/numpy_ints.h"

#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"

namespace cresset::frontend {

bool is_numpy_int(PyObject* number) {
  static PyObject* const type = module_attribute(python_names::kSubstitutes, "NumpyInt");
  return (PyObject*)Py_TYPE(number) == type;
}

PyRef numpy_int_of(PyObject* number) {
  static PyObject* const of_numpy = module_attribute(python_names::kSubstitutes, "of_numpy");
  return checked(PyObject_CallOneArg(of_numpy, number));
}

PyRef int_of_numpy(PyObject* number) {
  static PyObject* const plain = module_attribute(python_names::kSubstitutes, "plain");
  return checked(PyObject_CallOneArg(plain, number));
}

}  // namespace cresset::frontend
