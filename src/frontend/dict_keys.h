// Entries of dictionaries whose keys a function of the program hashes or compares: they are found by the key that lies
// there, and the program, which would notice, is not asked.
#pragma once

#include "frontend/py_objects.h"

namespace cresset::frontend {

// Whether looking for such a key runs code of the program's.
bool asks_program(PyObject* key);
// Whether it is a dictionary with one.
bool has_keys_that_ask(PyObject* object);
// What the dictionary holds under the key: under this very object where the program would be asked. Borrowed; nullptr:
// nothing.
PyObject* value_under(PyObject* dict, PyObject* key);
// The key that lies there: this very one, or else the only one with that value. Borrowed; nullptr: there is none, or
// there are several.
PyObject* key_there(PyObject* dict, PyObject* key, PyObject* value);
// As set_item(), which it is for all other keys. One that is not there yet is hashed once more.
void put_under(PyObject* dict, PyObject* key, PyObject* value);
// A dictionary of the same entries, an ordered one's in its order.
PyRef copy_of_dict(PyObject* dict);
// Its entries in the order in which the program sees them, which an OrderedDict's table does not have.
class EntriesInOrder {
 public:
  explicit EntriesInOrder(PyObject* dict) : dict_(dict) {
    if (PyODict_Check(dict)) keys_ = keys_in_order(dict);
  }
  bool next(PyObject** key, PyObject** value);  // borrowed; the dictionary stays as it is

 private:
  PyObject* dict_;
  Py_ssize_t at_ = 0;
  PyRef keys_;  // of an OrderedDict
};
// Whether two sets hold the same, such items by identity.
bool same_items_asking_nobody(PyObject* set, PyObject* other);
bool holds_such_items(PyObject* set);

}  // namespace cresset::frontend
