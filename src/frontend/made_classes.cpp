#include "frontend/made_classes.h"

#include <string_view>

#include "frontend/anatomy.h"
#include "frontend/py_objects.h"

namespace cresset::frontend {
namespace {

PyObject* shared_classes() {  // weak, so that they go with what made them
  static PyObject* const set = checked(PyObject_CallNoArgs(module_attribute("weakref", "WeakSet"))).release();
  return set;
}

bool may_change(PyObject* value) {
  return PyList_Check(value) || PyDict_Check(value) || PyAnySet_Check(value) || PyByteArray_Check(value) ||
         is_data_object(value);
}

}  // namespace

std::string share_class(PyTypeObject* type) {
  PyObject *name, *value;
  for (Py_ssize_t at = 0; PyDict_Next(type_dict(type), &at, &name, &value);) {
    const std::string_view text = utf8(name, "");
    const bool of_the_class_itself =
        text.starts_with('_') && text.ends_with('_');                           // __dataclass_fields__, _member_map_
    if (!of_the_class_itself && !Py_IS_TYPE(value, type) && may_change(value))  // not the members of an enumeration
      return std::string(text) + ", which may change";
  }
  checked(PyObject_CallMethod(shared_classes(), "add", "O", type));
  return {};
}

bool is_shared_class(PyTypeObject* type) { return PySequence_Contains(shared_classes(), (PyObject*)type) == 1; }

}  // namespace cresset::frontend
