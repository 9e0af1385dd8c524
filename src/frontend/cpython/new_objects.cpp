#include "frontend/cpython/new_objects.h"

#include "frontend/eval/hooks.h"

namespace cresset::frontend {

thread_local Young* Young::innermost_ = nullptr;

Young::Young(bool from_empty) : around_(std::exchange(innermost_, this)) {
  // Record the boundary now: objects which the program's own collections move are then found behind it.
  if (from_empty) look();
}

bool Young::holds(PyObject* object) {
  if (!seen_.contains(object)) look();
  return seen_.contains(object);
}

void Young::look() {
  PyObject* newest = newest_.release();
  cresset_eval_visit_young(
      &newest, [](void* seen, PyObject* o) { static_cast<decltype(seen_)*>(seen)->insert(o); }, &seen_);
  newest_ = PyRef::steal(newest);
}

}  // namespace cresset::frontend
