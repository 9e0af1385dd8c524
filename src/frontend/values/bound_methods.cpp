#include "frontend/values/bound_methods.h"

#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {
namespace {

// The descriptor in the class of `self` or in a base class; nullptr if the method comes from elsewhere.
PyObject* descriptor_of(PyObject* self, const PyMethodDef* method, PyObject* name) {
  PyObject* const bases = Py_TYPE(self)->tp_mro;
  for (Py_ssize_t i = 0; bases != nullptr && i < PyTuple_GET_SIZE(bases); ++i) {
    PyObject* const names = type_dict((PyTypeObject*)PyTuple_GET_ITEM(bases, i));
    PyObject* const found = names != nullptr ? PyDict_GetItemWithError(names, name) : nullptr;
    if (found != nullptr && Py_IS_TYPE(found, &PyMethodDescr_Type) && ((PyMethodDescrObject*)found)->d_method == method)
      return found;
  }
  return nullptr;
}

}  // namespace

bool has_own_self(PyObject* c_function) {
  PyObject* self = PyCFunction_GET_SELF(c_function);
  return self != nullptr && !PyModule_Check(self) && !PyType_Check(self);
}

bool is_bound_method(PyObject* object) {
  return is_c_function(object) ? has_own_self(object) : is_method_wrapper(object);
}

ObjectLayout layout_of_bound(PyObject* method) {
  if (is_method_wrapper(method)) {
    const MethodWrapper parts = decompose_wrapper(method);
    return {ObjectLayout::Kind::BuiltinMethod, checked(PyTuple_Pack(1, parts.descriptor)), {PyRef::borrow(parts.self)}};
  }
  PyObject* const self = PyCFunction_GET_SELF(method);
  const PyMethodDef* const definition = ((PyCFunctionObject*)method)->m_ml;
  const PyRef name = checked(PyUnicode_InternFromString(definition->ml_name));
  PyObject* const descriptor = descriptor_of(self, definition, name.get());
  return {ObjectLayout::Kind::BuiltinMethod,
          checked(PyTuple_Pack(1, descriptor != nullptr ? descriptor : name.get())),
          {PyRef::borrow(self)}};
}

PyRef make_bound(const ObjectLayout& layout) {
  PyObject *const how = PyTuple_GET_ITEM(layout.form.get(), 0), *const self = layout.parts[0].get();
  if (PyUnicode_Check(how)) return checked(PyObject_GetAttr(self, how));
  return checked(Py_TYPE(how)->tp_descr_get(how, self, (PyObject*)Py_TYPE(self)));
}

}  // namespace cresset::frontend
