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

std::string change_of_length(size_t then, PyObject* now) {
  const std::string expected = "expected " + std::to_string(then) + " items, got ";
  if (!PyTuple_Check(now) && !PyList_Check(now)) return expected + Py_TYPE(now)->tp_name;
  const Py_ssize_t length = Py_SIZE(now);  // of both
  return expected + (length == static_cast<Py_ssize_t>(then) ? Py_TYPE(now)->tp_name : std::to_string(length));
}

static std::string listed_keys(PyObject* keys) {
  constexpr Py_ssize_t kMostKeys = 8;
  std::string text = "(";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys) && i <= kMostKeys; ++i)
    text += (i > 0 ? ", " : "") + (i < kMostKeys ? key_text(PyTuple_GET_ITEM(keys, i)) : std::string("..."));
  return text + ")";
}

std::string change_of_keys(PyObject* then, PyObject* now) {
  const PyRef list = PyRef::steal(PyDict_Check(now) ? PyDict_Keys(now) : nullptr);
  const PyRef keys = PyRef::steal(list ? PyList_AsTuple(list.get()) : nullptr);
  PyErr_Clear();
  const std::string before = listed_keys(then), after = keys ? listed_keys(keys.get()) : std::string();
  return "expected keys " + before + ", got " + (before != after && keys ? after : Py_TYPE(now)->tp_name);
}

}  // namespace cresset::frontend
