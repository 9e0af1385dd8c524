#include "frontend/made_classes.h"

#include <algorithm>
#include <string_view>

#include "frontend/anatomy.h"
#include "frontend/py_objects.h"
#include "frontend/value_objects.h"

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

// Its type parameters evaluate their bounds when they are asked for them.
bool evaluates_later(std::string_view name, PyObject* value) {
  if (name != "__type_params__" || !PyTuple_Check(value)) return false;
  PyObject** const parameters = PySequence_Fast_ITEMS(value);
  return !std::all_of(parameters, parameters + PyTuple_GET_SIZE(value), &is_plain_type_parameter);
}

}  // namespace

std::string share_class(PyTypeObject* type) {
  PyObject *name, *value;
  for (Py_ssize_t at = 0; PyDict_Next(type_dict(type), &at, &name, &value);) {
    const std::string_view text = utf8(name, "");
    if (evaluates_later(text, value)) return "__type_params__, whose bounds are evaluated later";
    const bool of_the_class_itself =
        text.starts_with('_') && text.ends_with('_');                           // __dataclass_fields__, _member_map_
    if (!of_the_class_itself && !Py_IS_TYPE(value, type) && may_change(value))  // not the members of an enumeration
      return std::string(text) + ", which may change";
  }
  checked(PyObject_CallMethod(shared_classes(), "add", "O", type));
  return {};
}

bool is_made_by_function(PyObject* function) {
  const std::string_view name = utf8(((PyCodeObject*)PyFunction_GET_CODE(function))->co_qualname);
  static constexpr std::string_view kInside = "<locals>.";
  const size_t at = name.rfind(kInside);
  return at != std::string_view::npos && name.find('.', at + kInside.size()) == std::string_view::npos;
}

bool is_shared_class(PyTypeObject* type) { return PySequence_Contains(shared_classes(), (PyObject*)type) == 1; }

}  // namespace cresset::frontend
