// Iterators of deques and dictionaries that a piece leaves. They are made before the piece's effects happen at a later
// call, and are to stand in what those leave: CPython's complain of any change since they were made.
#pragma once

#include <utility>
#include <vector>

#include "frontend/anatomy.h"

namespace cresset::frontend {

// Keeps those that are made until it settles them.
class LateIterators {
 public:
  LateIterators();
  ~LateIterators();
  LateIterators(const LateIterators&) = delete;
  void settle();  // once the effects have happened

 private:
  friend void note_made_iterator(PyObject* made, const Anatomy& anatomy);
  std::vector<std::pair<PyRef, Anatomy>> made_;
  LateIterators* around_;
};
void note_made_iterator(PyObject* made, const Anatomy& anatomy);

}  // namespace cresset::frontend
