#include "frontend/cpython/errors.h"

#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"

namespace cresset::frontend {

void set_error(const char* type_name, const std::string& message) {
  const PyRef module = import_module(python_names::kPackage);
  const PyRef type = PyRef::steal(PyObject_GetAttrString(module.get(), type_name));
  if (!type) PyErr_Clear();
  PyErr_SetString(type ? type.get() : PyExc_RuntimeError, message.c_str());
}

}  // namespace cresset::frontend
