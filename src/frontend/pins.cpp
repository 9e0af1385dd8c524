#include "frontend/pins.h"

#include <unordered_map>
#include <unordered_set>

#include "frontend/py_objects.h"
#include "frontend/py_ref.h"
#include "frontend/symbols.h"

namespace cresset::frontend {
namespace {

struct Pins {
  PyRef code;  // keeps the address taken
  std::unordered_set<int64_t> values;
};

constexpr size_t kFew = 4, kMostCodes = 1000;  // codes: calls may make them anew

std::unordered_map<PyCodeObject*, Pins>& table() {
  static auto& pins = *new std::unordered_map<PyCodeObject*, Pins>;  // not destroyed after Python
  return pins;
}

}  // namespace

bool is_unpinned(PyObject* number) { return is_symint(number) && !node_of(number)->maybe_as_int(); }

bool is_plain_result(PyObject* object) {
  return PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) ||
         PyBytes_CheckExact(object) || is_plain_tensor(object);
}

void note_pin(const CressetActivation& activation, PyObject* number) {
  if (table().size() >= kMostCodes && table().count(activation.code) == 0) return;
  const long long value = PyLong_AsLongLong(without_symbols(PyRef::borrow(number)).get());
  if (value == -1 && PyErr_Occurred() != nullptr) return PyErr_Clear();
  Pins& pins = table()[activation.code];
  pins.code = PyRef::borrow((PyObject*)activation.code);
  if (pins.values.size() < kFew) pins.values.insert(value);
}

bool pins_too_often(const CressetActivation& activation) {
  if (table().empty()) return false;
  const auto found = table().find(activation.code);
  return found != table().end() && found->second.values.size() >= kFew;
}

void forget_pins() { table().clear(); }

}  // namespace cresset::frontend
