#include "frontend/feedback/autograd_trace_run.h"

#include <algorithm>

#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {
namespace {

void put_back(PyObject* object, PyObject* before) {
  int done = 0;
  if (PyCell_Check(object)) {
    done = PyCell_Set(object, before);
  } else if (PyODict_Check(object)) {
    checked(PyObject_CallMethod((PyObject*)&PyODict_Type, "clear", "O", object));
    checked(PyObject_CallMethod((PyObject*)&PyODict_Type, "update", "OO", object, before));
  } else if (PyList_Check(object)) {
    done = PyList_SetSlice(object, 0, PyList_GET_SIZE(object), before);
  } else if (PyDict_Check(object)) {
    PyDict_Clear(object);
    done = PyDict_Update(object, before);
  } else {
    done = PySet_Clear(object);
    const PyRef items = PyRef::steal(PyObject_GetIter(before));
    while (done == 0 && items) {
      const PyRef item = PyRef::steal(PyIter_Next(items.get()));
      if (!item) break;
      done = PySet_Add(object, item.get());
    }
  }
  if (done < 0 || PyErr_Occurred() != nullptr) throw PythonError{};
}

void put_back(const AutogradTraceRun::Change& change) {
  PyObject* const dict = instance_dict(change.owner.get());
  const bool is_gone = !change.before && dict != nullptr;
  if (is_gone && PyDict_GetItemWithError(dict, change.name.get()) == nullptr) return PyErr_Clear();
  if (PyObject_GenericSetAttr(change.owner.get(), change.name.get(), change.before.get()) < 0) throw PythonError{};
}

}  // namespace

void AutogradTraceRun::remember(PyObject* object) {
  const auto is_it = [&](const Contents& known) { return known.object.get() == object; };
  if (std::any_of(contents.begin(), contents.end(), is_it)) return;
  PyRef before;
  if (PyCell_Check(object))
    before = PyRef::borrow(PyCell_GET(object));
  else if (PyList_Check(object))
    before = checked(PyList_GetSlice(object, 0, PyList_GET_SIZE(object)));
  else if (PyODict_Check(object))
    before = checked(PyObject_CallMethod((PyObject*)&PyODict_Type, "copy", "O", object));
  else if (PyDict_Check(object))
    before = checked(PyDict_Copy(object));
  else if (PySet_Check(object))
    before = checked(PySet_New(object));
  else
    return;
  contents.push_back({PyRef::borrow(object), std::move(before)});
}

void AutogradTraceRun::undo() {
  for (const Contents& one : contents) put_back(one.object.get(), one.before.get());
  for (const Change& change : changes) put_back(change);
  contents.clear();
  changes.clear();
}

}  // namespace cresset::frontend
