#include "frontend/session/observed_lives.h"

#include "frontend/cache_entries/cache_entry.h"
#include "frontend/cpython/dict_keys.h"
#include "frontend/cpython/finalizers.h"
#include "frontend/cpython/items.h"
#include "frontend/cpython/of_type.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/replay/side_effects.h"

namespace cresset::frontend {

bool may_be_watched(PyObject* object) {
  static PyObject* const module = module_attribute("torch.nn", "Module");
  return is_heap_type(Py_TYPE(object)) && PyType_Check(object) == 0 &&
         PyObject_TypeCheck(object, (PyTypeObject*)module) == 0;
}

bool is_watched_weakly(PyObject* object) {
  return may_be_watched(object) && PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)) &&
         *PyObject_GET_WEAKREFS_LISTPTR(object) != nullptr;
}

namespace {

// For a call that creates a weak reference: the target, if the reference reports its death without being called (a
// proxy, a callback). Borrowed; nullptr for other calls.
PyObject* reported_of(const CressetCall& call) {
  static PyObject* const proxy = module_attribute("_weakref", "proxy");
  const bool by_new = is_c_function(call.callable) && call.nargs > 1 &&
                      PyCFunction_GET_SELF(call.callable) == (PyObject*)&_PyWeakref_RefType;
  const auto is_reference = [](PyObject* type) {
    return PyType_Check(type) != 0 && PyType_IsSubtype((PyTypeObject*)type, &_PyWeakref_RefType) != 0;
  };
  if (call.nargs == 0 || (call.callable != proxy && !by_new && !is_reference(call.callable))) return nullptr;
  const Py_ssize_t first = by_new ? 1 : 0;
  const bool tells = call.callable == proxy || (call.nargs > first + 1 && call.args[first + 1] != Py_None);
  return tells ? call.args[first] : nullptr;
}

// Whether the program observes the death of the object, through its class or a weak reference.
bool tells(PyObject* object) {
  if (object == nullptr || is_tensor(object) || !may_be_watched(object)) return false;
  static PyObject* const finalizer = PyUnicode_InternFromString("__del__");
  PyObject* const found = _PyType_Lookup(Py_TYPE(object), finalizer);
  if (found != nullptr && PyFunction_Check(found)) return true;
  return is_watched_weakly(object);
}

// The value which a write replaces. Borrowed, or nullptr.
PyObject* held_before(const CressetWrite& write) {
  PyObject* const owner = write.owner;
  PyObject* found = nullptr;
  if (write.kind == CRESSET_WRITE_CELL) return PyCell_GET(owner);
  if (write.kind == CRESSET_WRITE_ITEM && PyList_CheckExact(owner) && PyLong_CheckExact(write.key)) {
    Py_ssize_t at = PyLong_AsSsize_t(write.key);
    if (at < 0) at += PyList_GET_SIZE(owner);
    if (at >= 0 && at < PyList_GET_SIZE(owner)) found = PyList_GET_ITEM(owner, at);
  } else if (write.kind == CRESSET_WRITE_ITEM || write.kind == CRESSET_WRITE_GLOBAL) {
    if (PyDict_Check(owner)) found = PyDict_GetItemWithError(owner, write.key);
  } else if (write.kind == CRESSET_WRITE_ATTRIBUTE && !PyType_Check(owner)) {
    const PyRef held = held_attribute(owner, write.key);
    if (held && Py_REFCNT(held.get()) > 1) found = held.get();  // the owner holds it too; p.data is created by the read
  }
  PyErr_Clear();
  return found;
}

bool holds_one_that_tells(PyObject* container) {
  if (PyList_Check(container)) {
    PyObject** const items = PySequence_Fast_ITEMS(container);
    return any_among(items, items + PyList_GET_SIZE(container), tells);
  }
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Check(container) && PyDict_Next(container, &at, &key, &value);)
    if (tells(key) || tells(value)) return true;
  if (!PyAnySet_Check(container) && std::string_view(Py_TYPE(container)->tp_name) != "collections.deque") return false;
  const PyRef items = checked(PySequence_List(container));
  return holds_one_that_tells(items.get());
}

}  // namespace

// Whether the write or method may release an object whose death is observed, while the capture keeps it alive.
bool ObservedLives::may_end_a_life(const CressetWrite& write) {
  dying_ = nullptr;
  if (write.kind == CRESSET_WRITE_ITEM && PyDict_Check(write.owner) && asks_program(write.key))
    return provenance_.existed(write.owner) &&
           holds_one_that_tells(write.owner);  // avoids calling the program for the key
  dying_ = provenance_.existed(write.owner) ? held_before(write) : nullptr;
  return tells(dying_);
}
bool ObservedLives::may_end_a_life(const CCall& what) {
  dying_ = nullptr;  // several candidates
  static const std::unordered_set<std::string_view> kTake = {
      "pop",        "clear",  "remove",      "popitem",           "popleft",
      "discard",    "update", "__delitem__", "difference_update", "intersection_update",
      "__setitem__"};
  return what.self != nullptr && provenance_.existed(what.self) && kTake.count(what.name) != 0 &&
         holds_one_that_tells(what.self);
}

// Whether the call asks for an object that only the capture keeps alive, or registers an observer for the death of an
// older object.
bool ObservedLives::watches_death(const CCall& what, const CressetCall& call) {
  const bool by_name = what.self != nullptr && std::string_view(what.name) == "__call__";
  PyObject* const called = by_name ? what.self : call.callable;
  if (is_weakref(called)) {
    dying_ = PyWeakref_GET_OBJECT(called);
    return dying_ != Py_None && (provenance_.existed(dying_) || provenance_.existed(called)) &&
           may_be_watched(dying_) && maker_.only_we_hold(dying_);
  }
  dying_ = reported_of(call);
  return dying_ != nullptr && provenance_.existed(dying_) && may_be_watched(dying_);
}

}  // namespace cresset::frontend
