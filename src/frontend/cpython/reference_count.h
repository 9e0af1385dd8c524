#pragma once

#include <Python.h>

namespace cresset::frontend {

// Counts the references to an object, directly or in nested tuples: frame variables are passed to a segment in tuples.
struct HeldCount {
  PyObject* object;
  Py_ssize_t found = 0;
  int depth = 0;
};
inline int count_held(PyObject* held, void* arg) {
  HeldCount& count = *static_cast<HeldCount*>(arg);
  count.found += held == count.object ? 1 : 0;
  constexpr int kDeepest = 3;
  if (held == nullptr || !PyTuple_CheckExact(held) || count.depth == kDeepest) return 0;
  ++count.depth;
  PyTuple_Type.tp_traverse(held, count_held, arg);
  --count.depth;
  return 0;
}

template <class Holder>
Py_ssize_t count_held_by(const Holder& holder, PyObject* object) {
  HeldCount count{object};
  holder.visit(count_held, &count);
  return count.found;
}

}  // namespace cresset::frontend
