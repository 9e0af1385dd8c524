#include "frontend/no_collection.h"

#include "frontend/py_objects.h"

namespace cresset::frontend {
namespace {

int resting = 0;      // captures in progress
bool wanted = false;  // after them

}  // namespace

NoCollection::NoCollection() : was_enabled_(PyGC_Disable() != 0) {
  if (resting++ == 0) wanted = was_enabled_;
  static PyObject *const collect = module_attribute("gc", "collect"), *const youngest = PyLong_FromLong(0);
  if (was_enabled_ && !PyRef::steal(PyObject_CallOneArg(collect, youngest))) PyErr_Clear();
}

NoCollection::~NoCollection() {
  if (--resting == 0 && wanted) PyGC_Enable();
}

bool user_collects() { return resting > 0 ? wanted : PyGC_IsEnabled() != 0; }

void set_user_collects(bool now) {
  if (resting > 0)
    wanted = now;
  else
    now ? PyGC_Enable() : PyGC_Disable();
}

}  // namespace cresset::frontend
