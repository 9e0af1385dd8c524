// What C functions do, as far as a captured program must know: the table behind every call that is not evaluated.
#pragma once

#include <string>

#include "frontend/py_ref.h"

namespace cresset::frontend {

enum class CEffect : uint8_t {
  Pure,            // looks at nothing that can change but tensors; changes nothing
  Reads,           // looks into the containers that it is given
  Writes,          // changes its first argument, a container, in a way that the same call repeats
  ReadsAndWrites,  // and its result, or what it does, depends on what was in it
  SetsAttribute,   // setattr(owner, name, value) and its kin
  GetsAttribute,   // getattr, hasattr
  Outside,         // reaches something else: files, clocks, random state, other libraries
};

struct CCall {
  CEffect effect = CEffect::Pure;
  PyObject* self = nullptr;  // borrowed: the container or object that it is about; may be null
  const char* name = "";
  size_t first = 0;           // position of the first argument after self
  bool by_arguments = false;  // a function of a module, whose effect depends on its arguments
};

// `args` as a vectorcall gets them.
CCall classify_call(PyObject* callable, PyObject* const* args, Py_ssize_t nargs);

bool is_deque(PyObject* object);
bool is_defaultdict(PyObject* object);
PyRef item_of_deque(PyObject* deque, Py_ssize_t i);  // empty when there is none
// A list, tuple, dict, set or deque, or of a subclass.
bool is_set_or_deque(PyObject* object);
inline bool is_container(PyObject* object) {
  constexpr unsigned long kKinds = Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS | Py_TPFLAGS_DICT_SUBCLASS;
  constexpr Py_ssize_t kLeastOfOthers = 80;  // bytes of a deque; instances of most classes are smaller
  const PyTypeObject* const type = Py_TYPE(object);
  return (type->tp_flags & kKinds) != 0 || (type->tp_basicsize >= kLeastOfOthers && is_set_or_deque(object));
}
// What a list, tuple or deque holds, or the keys of an OrderedDict, as a tuple, whatever methods its class has; of
// others what they give.
PyRef items_of(PyObject* object);

// "module.name" for messages.
std::string describe_callable(PyObject* callable);

// The `__module__` of a function or a class; empty: it has none.
std::string module_of(PyObject* object);

}  // namespace cresset::frontend
