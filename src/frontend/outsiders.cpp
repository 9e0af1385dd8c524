#include "frontend/outsiders.h"

#include <unordered_map>

#include "frontend/py_ref.h"

namespace cresset::frontend {
namespace {

// With weak references, which say when one is gone. Under the GIL.
std::unordered_map<PyObject*, PyRef>& known() {
  static auto& generators = *new std::unordered_map<PyObject*, PyRef>;  // not destroyed after Python
  return generators;
}

PyObject* forget(PyObject*, PyObject* reference) {
  for (auto it = known().begin(); it != known().end(); ++it) {
    if (it->second.get() != reference) continue;
    const PyRef gone = std::move(it->second);
    known().erase(it);
    break;
  }
  any_outsiders = !known().empty();
  return Py_NewRef(Py_None);
}

PyObject* forgetter() {
  static PyMethodDef method = {"_forget", forget, METH_O, nullptr};
  static PyObject* const function = PyCFunction_New(&method, nullptr);
  return function;
}

}  // namespace

void note_outsider(PyObject* generator) {
  if (known().count(generator) != 0) return;
  PyRef reference = PyRef::steal(PyWeakref_NewRef(generator, forgetter()));
  if (!reference) return PyErr_Clear();
  known().emplace(generator, std::move(reference));
  any_outsiders = true;
}

bool any_outsiders = false;

bool is_known_outsider(PyObject* object) { return known().count(object) != 0; }

}  // namespace cresset::frontend
