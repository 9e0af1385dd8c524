// Deques, defaultdicts and the items of containers.
#pragma once

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

bool is_deque(PyObject* object);
bool is_defaultdict(PyObject* object);
PyRef item_of_deque(PyObject* deque, Py_ssize_t i);  // empty: no such item
// Whether the object is a list, tuple, dict, set or deque, or an instance of a subclass.
bool is_set_or_deque(PyObject* object);
inline bool is_container(PyObject* object) {
  constexpr unsigned long kKinds = Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS | Py_TPFLAGS_DICT_SUBCLASS;
  constexpr Py_ssize_t kLeastOfOthers = 80;  // bytes of a deque; instances of most classes are smaller
  const PyTypeObject* const type = Py_TYPE(object);
  return (type->tp_flags & kKinds) != 0 || (type->tp_basicsize >= kLeastOfOthers && is_set_or_deque(object));
}
// The items of a list, tuple or deque, or the keys of an OrderedDict, as a tuple; methods of subclasses are not called.
// Other objects are iterated.
PyRef items_of(PyObject* object);
bool goes_over_dict(PyObject* iterator);  // over a dict or a view of a dict

}  // namespace cresset::frontend
