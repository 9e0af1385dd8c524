#include "frontend/cpython/source_lines.h"

#include <Python.h>

#include <string>

#include "frontend/cpython/py_ref.h"
#include "graph/source_text.h"

namespace cresset::frontend {
namespace {

// linecache.cache[file] is (size, mtime, lines, full name), or a tuple of length 1 before the first lookup. The cache
// is read directly, because a capture would treat linecache's Python functions as the program's.
PyObject* cached_lines(const std::string& file) {
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* linecache = PyDict_GetItemString(modules, "linecache");
  if (linecache == nullptr || !PyModule_Check(linecache)) return nullptr;
  PyObject* cache = PyDict_GetItemString(PyModule_GetDict(linecache), "cache");
  if (cache == nullptr || !PyDict_Check(cache)) return nullptr;
  PyObject* entry = PyDict_GetItemString(cache, file.c_str());
  if (entry == nullptr || !PyTuple_Check(entry) || PyTuple_GET_SIZE(entry) < 3) return nullptr;
  PyObject* lines = PyTuple_GET_ITEM(entry, 2);
  return PyList_Check(lines) ? lines : nullptr;
}

std::string cached_line(const std::string& file, int64_t line) {
  if (!Py_IsInitialized()) return {};
  const GilHeld gil;
  PyObject* lines = cached_lines(file);
  if (lines == nullptr || line > PyList_GET_SIZE(lines)) return {};
  PyObject* text = PyList_GET_ITEM(lines, line - 1);
  const char* utf8 = PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
  if (utf8 == nullptr) PyErr_Clear();
  return utf8 != nullptr ? utf8 : "";
}

}  // namespace

void install_source_lines() { graph::text::set_source_reader(cached_line); }

}  // namespace cresset::frontend
