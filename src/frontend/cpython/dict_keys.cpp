#include "frontend/cpython/dict_keys.h"

#include <algorithm>

#include "frontend/cpython/code_origin.h"
#include "frontend/cpython/containers.h"
#include "frontend/cpython/items.h"
#include "frontend/eval/hooks.h"

#if PY_VERSION_HEX >= 0x030D0000
// The function is still exported, but its declaration is internal now.
extern "C" PyAPI_FUNC(int) _PyDict_SetItem_KnownHash(PyObject* dict, PyObject* key, PyObject* value, Py_hash_t hash);
#endif

namespace cresset::frontend {

// torch's own hash functions have no side effects.
static bool is_of_torch(PyObject* key) {
  static PyObject* const name = PyUnicode_InternFromString("__hash__");
  PyObject* const hash = _PyType_Lookup(Py_TYPE(key), name);  // a function
  return !path_in_torch(((PyCodeObject*)PyFunction_GET_CODE(hash))->co_filename).empty();
}

bool asks_program(PyObject* key) {
  if (!PyTuple_Check(key) && !PyFrozenSet_CheckExact(key))
    return !is_equal_by_identity(key) && is_hashed_by_program(key) && !is_of_torch(key);
  const PyRef parts = items_of(key);
  PyObject** const items = PySequence_Fast_ITEMS(parts.get());
  return any_among(items, items + PyTuple_GET_SIZE(parts.get()), asks_program);
}

bool has_keys_that_ask(PyObject* object) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Check(object) && PyDict_Next(object, &position, &key, &value))
    if (!PyUnicode_CheckExact(key) && asks_program(key)) return true;
  return false;
}

// (nullptr, nullptr): no entry.
static std::pair<PyObject*, PyObject*> entry_of(PyObject* dict, PyObject* wanted) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &value))
    if (key == wanted) return {key, value};
  return {};
}

PyObject* value_under(PyObject* dict, PyObject* key) {
  if (!PyUnicode_CheckExact(key) && asks_program(key)) return entry_of(dict, key).second;
  PyObject* const value = PyDict_GetItemWithError(dict, key);
  if (value == nullptr) PyErr_Clear();
  return value;
}

PyObject* key_there(PyObject* dict, PyObject* wanted, PyObject* held) {
  if (entry_of(dict, wanted).first != nullptr) return wanted;
  PyObject *key, *value, *found = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &value))
    if (value == held && std::exchange(found, key) != nullptr) return nullptr;
  return found;
}

bool EntriesInOrder::next(PyObject** key, PyObject** value) {
  if (!keys_) return PyDict_Next(dict_, &at_, key, value) != 0;
  if (at_ >= PyList_GET_SIZE(keys_.get())) return false;
  *key = PyList_GET_ITEM(keys_.get(), at_++);
  *value = value_under(dict_, *key);
  return *value != nullptr;
}

// Replaces the value in the entry of this very key, without hashing the key.
static bool exchanged(PyObject* dict, PyObject* wanted, PyObject* now) {
  PyObject **key, **value;
  for (Py_ssize_t i = 0; cresset_eval_dict_entry(dict, i, &key, &value) > 0; ++i) {
    if (*key != wanted || *value == nullptr) continue;
    const PyRef before = PyRef::steal(std::exchange(*value, Py_NewRef(now)));
    if (cresset_eval_dict_changed(dict) < 0) throw PythonError{};
    return true;
  }
  return false;
}

void put_under(PyObject* dict, PyObject* key, PyObject* value) {
  const bool asks = value != nullptr && !PyUnicode_CheckExact(key) && asks_program(key);
  if (!asks || !exchanged(dict, key, value)) set_item(dict, key, value);
}

// Copying an OrderedDict would hash each key. A key whose hash is program code is stored under the hash of its address,
// since it is only looked up by identity.
PyRef copy_of_dict(PyObject* dict) {
  if (!PyODict_Check(dict)) return checked(PyDict_Copy(dict));
  PyRef copy = checked(PyDict_New());
  PyObject *key, *value;
  for (EntriesInOrder entries(dict); entries.next(&key, &value);) {
    const int done = asks_program(key) ? _PyDict_SetItem_KnownHash(copy.get(), key, value, _Py_HashPointer(key))
                                       : PyDict_SetItem(copy.get(), key, value);
    if (done < 0) throw PythonError{};
  }
  return copy;
}

static std::vector<PyObject*> items_in(PyObject* set) {  // borrowed: the set keeps them
  const PyRef items = items_of(set);
  PyObject** const first = PySequence_Fast_ITEMS(items.get());
  return {first, first + PyTuple_GET_SIZE(items.get())};
}

bool holds_such_items(PyObject* set) {
  const std::vector<PyObject*> items = items_in(set);
  return any_among(items.begin(), items.end(), asks_program);
}

bool same_items_asking_nobody(PyObject* set, PyObject* other) {
  if (PySet_GET_SIZE(set) != PySet_GET_SIZE(other)) return false;
  const std::vector<PyObject*> items = items_in(set);
  std::vector<PyObject*> others = items_in(other);
  std::sort(others.begin(), others.end());
  return all_among(items.begin(), items.end(), [&](PyObject* item) {
    return std::binary_search(others.begin(), others.end(), item) ||
           (!asks_program(item) && PySet_Contains(other, item) == 1);
  });
}

bool has_item_method_of_c(PyObject* dict, const char* method) {
  if (PyDict_CheckExact(dict)) return true;
  const PyRef found = PyRef::steal(PyObject_GetAttrString((PyObject*)Py_TYPE(dict), method));
  return !PyFunction_Check(found.get());
}

}  // namespace cresset::frontend
