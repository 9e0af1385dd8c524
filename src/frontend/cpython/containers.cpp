#include "frontend/cpython/containers.h"

#include <string_view>

#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {

static PyTypeObject* deque_type() {
  static PyObject* const deque = module_attribute("collections", "deque");
  return (PyTypeObject*)deque;
}

bool is_deque(PyObject* object) { return PyObject_TypeCheck(object, deque_type()); }

PyRef item_of_deque(PyObject* deque, Py_ssize_t i) {
  PyObject* const item = deque_type()->tp_as_sequence->sq_item(deque, i);
  if (item == nullptr) PyErr_Clear();
  return PyRef::steal(item);
}

bool is_set_or_deque(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  // A type whose base is `object` does not extend another type with its own layout.
  if (type->tp_base == &PyBaseObject_Type || type->tp_base == nullptr)
    return PyAnySet_CheckExact(object) || type == deque_type();
  return PyAnySet_Check(object) || is_deque(object);
}

bool is_defaultdict(PyObject* object) {
  static PyObject* const type = module_attribute("collections", "defaultdict");
  return PyObject_TypeCheck(object, (PyTypeObject*)type) != 0;
}

PyRef items_of(PyObject* object) {
  if (PyList_Check(object)) return checked(PyList_AsTuple(object));
  if (PyTuple_Check(object)) return checked(PyTuple_GetSlice(object, 0, PyTuple_GET_SIZE(object)));
  if (PyODict_Check(object)) return checked(PyList_AsTuple(keys_in_order(object).get()));
  if (!is_deque(object)) return checked(PySequence_Tuple(object));
  const PyRef iterator = checked(deque_type()->tp_iter(object));
  return checked(PySequence_Tuple(iterator.get()));
}

bool goes_over_dict(PyObject* iterator) {
  const std::string_view type = Py_TYPE(iterator)->tp_name;
  return type.starts_with("dict_") || type == "odict_iterator";
}

}  // namespace cresset::frontend
