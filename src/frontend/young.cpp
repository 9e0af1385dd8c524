#include "frontend/young.h"

#include "frontend/eval/hooks.h"

namespace cresset::frontend {

thread_local Young* Young::innermost_ = nullptr;

bool Young::holds(PyObject* object) {
  if (seen_.contains(object)) return true;
  PyObject* newest = newest_.release();
  cresset_eval_visit_young(
      &newest, [](void* seen, PyObject* o) { static_cast<decltype(seen_)*>(seen)->insert(o); }, &seen_);
  newest_ = PyRef::steal(newest);
  return seen_.contains(object);
}

}  // namespace cresset::frontend
