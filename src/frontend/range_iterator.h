// Where the iterator of a range stands. From CPython 3.12 on it knows only what it has left, and can only move on. It
// is told as standing in a range that ends where it ends and begins at a number that does not depend on how far it is,
// so that one piece serves every round of a loop, as with iterators that know their index.
#pragma once

#include "frontend/py_ref.h"

namespace cresset::frontend {

// Whether what __reduce__ gave is of such an iterator.
bool knows_rest_only(PyObject* iterator, PyObject* reduced);
struct PlaceInRange {
  PyRef range, index;
};
PlaceInRange place_in_range(PyObject* rest);
// Moves an iterator of which `rest` is left on to that place. Throws PythonError.
void move_on(PyObject* iterator, PyObject* rest, PyObject* range, PyObject* index);

}  // namespace cresset::frontend
