// The effects of C functions on a captured program: the table behind every call which the evaluator does not enter.
#pragma once

#include <string>

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

enum class CEffect : uint8_t {
  Pure,            // reads no mutable state except tensors; has no side effect
  Reads,           // reads the contents of its container arguments
  Writes,          // mutates its first argument, a container; the same call repeats the mutation
  ReadsAndWrites,  // a mutation whose result or effect depends on the previous contents
  SetsAttribute,   // setattr(owner, name, value) and similar functions
  GetsAttribute,   // getattr, hasattr
  Outside,         // untraceable: uses files, clocks, random state, other libraries
};

struct CCall {
  CEffect effect = CEffect::Pure;
  PyObject* self = nullptr;  // borrowed: the container or object which the call reads or writes; may be null
  const char* name = "";
  size_t first = 0;           // position of the first argument after self
  bool by_arguments = false;  // a module function, whose effect depends on its arguments
};

// `args` follows the vectorcall convention.
CCall classify_call(PyObject* callable, PyObject* const* args, Py_ssize_t nargs);

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

// "module.name" for messages.
std::string describe_callable(PyObject* callable);

// The `__module__` of a function or a class; empty when the attribute is missing.
std::string module_of(PyObject* object);

}  // namespace cresset::frontend
