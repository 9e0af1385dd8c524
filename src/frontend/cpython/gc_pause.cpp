#include "frontend/cpython/gc_pause.h"

#include "frontend/cpython/py_objects.h"
#include "frontend/eval/interpreter.h"

namespace cresset::frontend {
namespace {

int resting = 0;  // captures in progress

bool collect_youngest() {
  static PyObject *const collect = module_attribute("gc", "collect"), *const youngest = PyLong_FromLong(0);
  const bool done = static_cast<bool>(PyRef::steal(PyObject_CallOneArg(collect, youngest)));
  return PyErr_Clear(), done;
}

}  // namespace

NoCollection::NoCollection() : were_collected_(PyGC_IsEnabled() != 0 && collect_youngest()) {
  if (resting++ == 0) cresset_eval_rest_collector();
}

NoCollection::~NoCollection() {
  if (--resting == 0) cresset_eval_wake_collector();
}

void NoCollection::again() {
  if (resting > 0) cresset_eval_rest_collector();
}

}  // namespace cresset::frontend
