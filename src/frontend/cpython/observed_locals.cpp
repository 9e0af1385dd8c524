#include "frontend/cpython/observed_locals.h"

#include <iterator>
#include <unordered_map>
#include <utility>

#include "frontend/cpython/code_origin.h"
#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {
namespace {

constexpr int kDeepest = 2;

bool names(PyCodeObject* code, const char* const* wanted, size_t count) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); ++i)
    for (size_t w = 0; w < count; ++w)
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_names, i), wanted[w]) == 0) return true;
  return false;
}

// Names of functions and modules which may read a frame's locals.
bool looks_at_own_locals(PyCodeObject* code) {
  static constexpr const char* kNames[] = {"locals",  "vars", "dir",     "eval", "exec",
                                           "globals", "sys",  "inspect", "super"};
  return names(code, kNames, std::size(kNames));
}

bool looks_at_other_locals(PyCodeObject* code) {
  static constexpr const char* kNames[] = {"f_locals"};
  return names(code, kNames, std::size(kNames));
}

bool leads_there(PyObject* function, int depth);

// Whether a name in the code leads to a function that reads locals: a global function, or a function of a global
// module.
bool any_leads_there(PyCodeObject* code, PyObject* globals, int depth) {
  const auto leads = [&](PyObject* dict, PyObject* name) {
    PyObject* const found = dict != nullptr ? PyDict_GetItemWithError(dict, name) : nullptr;
    return found != nullptr && PyFunction_Check(found) && leads_there(found, depth);
  };
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); ++i) {
    PyObject* const name = PyTuple_GET_ITEM(code->co_names, i);
    if (leads(globals, name)) return true;
    PyObject* const module = PyDict_GetItemWithError(globals, name);
    for (Py_ssize_t j = 0; module != nullptr && PyModule_Check(module) && j < PyTuple_GET_SIZE(code->co_names); ++j)
      if (leads(PyModule_GetDict(module), PyTuple_GET_ITEM(code->co_names, j))) return true;
  }
  return false;
}

bool search(PyObject* function, int depth) {
  auto* const code = (PyCodeObject*)PyFunction_GET_CODE(function);
  if (looks_at_other_locals(code)) return true;
  if (depth >= kDeepest) return false;
  PyObject* const closure = PyFunction_GET_CLOSURE(function);
  for (Py_ssize_t i = 0; closure != nullptr && i < PyTuple_GET_SIZE(closure); ++i) {
    PyObject* const held = PyCell_GET(PyTuple_GET_ITEM(closure, i));
    if (held != nullptr && PyFunction_Check(held) && leads_there(held, depth + 1)) return true;
  }
  return any_leads_there(code, PyFunction_GET_GLOBALS(function), depth + 1);
}

// torch's own code inspects no frames. The answer per code object is cached, so that graph breaks do not repeat the
// search.
bool leads_there(PyObject* function, int depth) {
  constexpr size_t kMost = 10000;
  static auto& known = *new std::unordered_map<PyObject*, std::pair<PyRef, bool>>;  // kept for the whole process
  PyObject* const code = PyFunction_GET_CODE(function);
  if (const auto found = known.find(code); found != known.end()) return found->second.second;
  PyObject* const file = ((PyCodeObject*)code)->co_filename;
  if (!path_in_torch(file).empty() || !path_in_cresset(file).empty()) return false;
  if (known.size() >= kMost) return true;
  known.emplace(code, std::pair(PyRef::borrow(code), false));  // ends the recursion of a recursive function
  const bool leads = search(function, depth);
  if (leads || depth == 0) return known[code].second = leads;
  return known.erase(code), false;  // a search from another function may reach further
}

}  // namespace

bool may_look_at_locals(const CressetFrameImage& image) {
  if (looks_at_own_locals(image.code)) return true;
  if (image.function == nullptr || !PyFunction_Check(image.function)) return false;
  if (leads_there(image.function, 0)) return true;
  for (int i = 0; i < image.slot_count; ++i) {
    PyObject* held = image.slots[i];
    if (held != nullptr && PyCell_Check(held)) held = PyCell_GET(held);
    if (held != nullptr && PyFunction_Check(held) && leads_there(held, 0)) return true;
  }
  return false;
}

}  // namespace cresset::frontend
