#include "frontend/cpython/range_iterator.h"

#include <cstdint>

#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {
namespace {

struct Bounds {
  int64_t start, stop, step;
};

int64_t bound(PyObject* range, const char* name) {
  const PyRef number = checked(PyObject_GetAttrString(range, name));
  const int64_t value = PyLong_AsLongLong(number.get());
  if (value == -1 && PyErr_Occurred()) throw PythonError{};
  return value;
}

// CPython's range_iterator covers only machine words.
Bounds bounds_of(PyObject* range) { return {bound(range, "start"), bound(range, "stop"), bound(range, "step")}; }

// Farther away than any count in a program.
constexpr int64_t kFar = int64_t{1} << 40;

// The start of a longer range with the same stop and step. If the iterator counts up from at least 0, the start is the
// smallest possible number from 0 on. Otherwise the start lies far away.
int64_t canonical_start(const Bounds& rest) {
  if (rest.start <= -kFar || rest.start >= kFar || rest.stop <= -kFar || rest.stop >= kFar) return rest.start;
  const bool from_zero = rest.step > 0 && rest.start >= 0;
  const int64_t behind = from_zero ? 0 : rest.step > 0 ? -kFar : kFar;
  return rest.stop - (rest.stop - behind) / rest.step * rest.step;
}

}  // namespace

bool knows_rest_only(PyObject* iterator, PyObject* reduced) {
  return Py_TYPE(iterator) == &PyRangeIter_Type && PyTuple_GET_SIZE(reduced) == 3 &&
         PyTuple_GET_ITEM(reduced, 2) == Py_None;
}

PlaceInRange place_in_range(PyObject* rest) {
  const Bounds bounds = bounds_of(rest);
  const int64_t start = canonical_start(bounds);
  PyRef range =
      checked(PyObject_CallFunction((PyObject*)&PyRange_Type, "LLL", static_cast<long long>(start),
                                    static_cast<long long>(bounds.stop), static_cast<long long>(bounds.step)));
  return {std::move(range), checked(PyLong_FromLongLong((bounds.start - start) / bounds.step))};
}

void move_on(PyObject* iterator, PyObject* rest, PyObject* range, PyObject* index) {
  const Bounds now = bounds_of(rest), then = bounds_of(range);
  const int64_t place = PyLong_AsLongLong(index);
  if (place == -1 && PyErr_Occurred()) throw PythonError{};
  const int64_t steps = (then.start + place * then.step - now.start) / then.step;
  if (steps < 0) {
    PyErr_SetString(PyExc_SystemError, "the iterator of a range cannot go back");
    throw PythonError{};
  }
  checked(PyObject_CallMethod(iterator, "__setstate__", "L", static_cast<long long>(steps)));
}

}  // namespace cresset::frontend
