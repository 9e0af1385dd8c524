// Entries of dictionaries whose keys a function of the program hashes or compares: they are found by the key that lies
// there, and the program, which would notice, is not asked.
#pragma once

#include "frontend/py_objects.h"

namespace cresset::frontend {

// Whether looking for such a key runs code of the program's.
bool asks_program(PyObject* key);
// What the dictionary holds under the key: under this very object where the program would be asked. Borrowed; nullptr:
// nothing.
PyObject* value_under(PyObject* dict, PyObject* key);
// The key that lies there: this very one, or else the only one with that value. Borrowed; nullptr: there is none, or
// there are several.
PyObject* key_there(PyObject* dict, PyObject* key, PyObject* value);
// As set_item(), which it is for all other keys. One that is not there yet is hashed once more.
void put_under(PyObject* dict, PyObject* key, PyObject* value);
// Whether two sets hold the same, such items by identity.
bool same_items_asking_nobody(PyObject* set, PyObject* other);
bool holds_such_items(PyObject* set);

}  // namespace cresset::frontend
