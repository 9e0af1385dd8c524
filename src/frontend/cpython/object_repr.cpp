#include "frontend/cpython/object_repr.h"

#include "frontend/cpython/constant_values.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/slots.h"

namespace cresset::frontend {
namespace {

std::string repr(PyObject* constant) {
  const PyRef text = PyRef::steal(PyObject_Repr(constant));
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (utf8 == nullptr) return PyErr_Clear(), "?";
  return utf8;
}

}  // namespace

std::string key_text(PyObject* key) {
  if (PyType_Check(key)) return ((PyTypeObject*)key)->tp_name;
  const std::string type = Py_TYPE(key)->tp_name;
  if (is_heap_type(Py_TYPE(key)) && is_enum_member(key)) {
    PyObject* const name = PyDict_GetItemString(instance_dict(key), "_name_");
    return type + "." + (name != nullptr && PyUnicode_Check(name) ? utf8(name) : "?");
  }
  return is_constant_value(key) ? repr(key) : type;
}

std::string value_text(PyObject* value) {
  if (value == nullptr) return "nothing";
  return is_constant_value(value) ? repr(value) : std::string("another ") + Py_TYPE(value)->tp_name;
}

}  // namespace cresset::frontend
