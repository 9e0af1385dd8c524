#include "frontend/cpython/new_objects.h"

#include "frontend/eval/hooks.h"

namespace cresset::frontend {

thread_local NewObjects* NewObjects::innermost_ = nullptr;

NewObjects::NewObjects(bool from_empty) : around_(std::exchange(innermost_, this)) {
  // Record the boundary now: objects which the program's own collections move are then found behind it.
  if (from_empty) look();
}

bool NewObjects::holds(PyObject* object) {
  if (!seen_.contains(object)) look();
  return seen_.contains(object);
}

void NewObjects::look() {
  PyObject* newest = newest_.release();
  cresset_eval_visit_new_objects(
      &newest, [](void* seen, PyObject* o) { static_cast<decltype(seen_)*>(seen)->insert(o); }, &seen_);
  newest_ = PyRef::steal(newest);
}

}  // namespace cresset::frontend
