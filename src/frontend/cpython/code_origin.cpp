#include "frontend/cpython/code_origin.h"

#include <string>

#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {
namespace {

// The directory of a package, with the separator.
std::string directory_of(const char* package) {
  const std::string file = utf8(module_attribute(package, "__file__"), "");
  return file.substr(0, file.find_last_of("/\\") + 1);
}

std::string_view path_in(const std::string& directory, PyObject* filename) {
  const std::string_view file = utf8(filename, "");
  return !directory.empty() && file.starts_with(directory) ? file.substr(directory.size()) : std::string_view();
}

}  // namespace

std::string_view path_in_torch(PyObject* filename) {
  static const std::string directory = directory_of("torch");
  return path_in(directory, filename);
}

std::string_view path_in_cresset(PyObject* filename) {
  static const std::string directory = directory_of("cresset");
  return path_in(directory, filename);
}

}  // namespace cresset::frontend
