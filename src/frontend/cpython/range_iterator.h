// The position of a range iterator. From CPython 3.12 on the iterator knows only the remaining range and can only
// advance. The position is therefore expressed as an index into a longer range, whose beginning does not depend on the
// progress. A single segment then serves every iteration of a loop, as for iterators with an index.
#pragma once

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// Whether the __reduce__ result belongs to a range iterator without an index.
bool knows_rest_only(PyObject* iterator, PyObject* reduced);
struct PlaceInRange {
  PyRef range, index;
};
PlaceInRange place_in_range(PyObject* rest);
// Advances an iterator with the remaining range `rest` to this place. Throws PythonError.
void move_on(PyObject* iterator, PyObject* rest, PyObject* range, PyObject* index);

}  // namespace cresset::frontend
