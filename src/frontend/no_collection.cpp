#include "frontend/no_collection.h"

#include "frontend/eval/hooks.h"
#include "frontend/py_objects.h"

namespace cresset::frontend {
namespace {

int resting = 0;  // captures in progress

}  // namespace

NoCollection::NoCollection() : was_enabled_(PyGC_IsEnabled() != 0) {
  static PyObject *const collect = module_attribute("gc", "collect"), *const youngest = PyLong_FromLong(0);
  if (was_enabled_ && !PyRef::steal(PyObject_CallOneArg(collect, youngest))) PyErr_Clear();
  if (resting++ == 0) cresset_eval_rest_collector();
}

NoCollection::~NoCollection() {
  if (--resting == 0) cresset_eval_wake_collector();
}

void NoCollection::again() {
  if (resting > 0) cresset_eval_rest_collector();
}

}  // namespace cresset::frontend
