#include "frontend/cpython/c_iterator_contents.h"

#include <string_view>
#include <utility>
#include <vector>

#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {
namespace {

int note(PyObject* held, void* all) {
  static_cast<std::vector<PyRef>*>(all)->push_back(PyRef::borrow(held));
  return 0;
}

// tp_traverse reports each reference once, so each call exchanges a single reference. References in separately
// allocated memory, such as the links of a list inside the object, stay unchanged.
void exchange(PyObject* object, PyObject* before, PyRef now) {
  auto** const words = reinterpret_cast<PyObject**>(object);
  const size_t count = static_cast<size_t>(Py_TYPE(object)->tp_basicsize) / sizeof(PyObject*);
  for (size_t i = sizeof(PyObject) / sizeof(PyObject*); i < count; ++i)
    if (words[i] == before) {
      words[i] = now.release();
      return Py_DECREF(before);
    }
}

}  // namespace

bool holds_inside(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  if (type->tp_traverse == nullptr || type->tp_itemsize != 0 || _PyObject_GetDictPtr(object) != nullptr) return false;
  if (type == &PyProperty_Type || type == &PySuper_Type || type == &PyCFunction_Type || is_method_wrapper(object))
    return true;
  if (std::string_view(type->tp_name).starts_with("itertools.")) return true;
  return type->tp_iternext != nullptr && (!is_heap_type(type) || (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) != 0);
}

void replace_held(PyObject* object, const std::function<PyRef(PyObject*)>& replaced) {
  std::vector<PyRef> held;
  Py_TYPE(object)->tp_traverse(object, &note, &held);
  for (const PyRef& before : held) {
    if (PyType_Check(before.get()) || PyModule_Check(before.get())) continue;
    PyRef now = replaced(before.get());
    if (now.get() != before.get()) exchange(object, before.get(), std::move(now));
  }
}

}  // namespace cresset::frontend
