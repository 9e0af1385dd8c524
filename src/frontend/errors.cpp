#include "frontend/errors.h"

#include "frontend/py_ref.h"

namespace cresset::frontend {

void set_error(const char* type_name, const std::string& message) {
  PyRef module = PyRef::steal(PyImport_ImportModule("cresset"));
  PyRef type = module ? PyRef::steal(PyObject_GetAttrString(module.get(), type_name)) : PyRef();
  if (!type) PyErr_Clear();
  PyErr_SetString(type ? type.get() : PyExc_RuntimeError, message.c_str());
}

}  // namespace cresset::frontend
