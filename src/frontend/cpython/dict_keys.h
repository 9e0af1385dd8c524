// Dictionary entries whose keys are hashed or compared by a Python function of the program. The functions here find an
// entry by the identity of its stored key, so that the program's function is not called.
#pragma once

#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {

// Whether a lookup of this key runs code of the program.
bool asks_program(PyObject* key);
// Whether the object is a dictionary with at least one key of this kind.
bool has_keys_that_ask(PyObject* object);
// The value under the key. Keys which would call the program are compared by identity. Borrowed; nullptr: no entry.
PyObject* value_under(PyObject* dict, PyObject* key);
// The stored key: this very object, or else the only key with this value. Borrowed; nullptr: no key or several keys
// match.
PyObject* key_there(PyObject* dict, PyObject* key, PyObject* value);
// Equals set_item() for ordinary keys. A new key which calls the program is hashed once more.
void put_under(PyObject* dict, PyObject* key, PyObject* value);
// Copies the dictionary; an OrderedDict keeps its order.
PyRef copy_of_dict(PyObject* dict);
// Iterates over the entries in the order which the program sees. The hash table of an OrderedDict has another order.
class EntriesInOrder {
 public:
  explicit EntriesInOrder(PyObject* dict) : dict_(dict) {
    if (PyODict_Check(dict)) keys_ = keys_in_order(dict);
  }
  bool next(PyObject** key, PyObject** value);  // borrowed; the dictionary must not change

 private:
  PyObject* dict_;
  Py_ssize_t at_ = 0;
  PyRef keys_;  // of an OrderedDict
};
// Whether two sets hold the same items. Items which would call the program are compared by identity.
bool same_items_asking_nobody(PyObject* set, PyObject* other);
bool holds_such_items(PyObject* set);

// Whether items[key] ("__getitem__"), or items[key] = value ("__setitem__"), of a dictionary runs C code.
bool has_item_method_of_c(PyObject* dict, const char* method);

}  // namespace cresset::frontend
