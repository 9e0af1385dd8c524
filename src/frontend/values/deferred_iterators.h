// Iterators over deques and dictionaries which outlive a segment. At a later call they are created before the side
// effects of the segment are replayed, and must iterate over the containers afterwards. CPython's iterators raise an
// error after any change since their creation.
#pragma once

#include <utility>
#include <vector>

#include "frontend/values/object_layout_parts.h"

namespace cresset::frontend {

// Collects the iterators created during its lifetime, until settle().
class LateIterators {
 public:
  LateIterators();
  ~LateIterators();
  LateIterators(const LateIterators&) = delete;
  // Called after the side effects. make: builds the object of a layout.
  void settle(PyRef (*make)(const ObjectLayout&));

 private:
  friend void note_made_iterator(PyObject* made, const ObjectLayout& layout);
  std::vector<std::pair<PyRef, ObjectLayout>> made_;
  LateIterators* around_;
};
void note_made_iterator(PyObject* made, const ObjectLayout& layout);

}  // namespace cresset::frontend
