#include "frontend/guards/size_marks.h"

#include <fmt/format.h>

#include <functional>
#include <string_view>

#include "frontend/cpython/errors.h"
#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {
namespace {

bool marks_noted = false;  // under the GIL

// The names of torch's attributes. torch's rule for a dimension with several marks: unbacked, then dynamic, then
// static.
struct Names {
  PyObject* own = PyUnicode_InternFromString("_cresset_marks");
  PyObject* fixed = PyUnicode_InternFromString("_dynamo_static_indices");
  PyObject* maybe = PyUnicode_InternFromString("_dynamo_weak_dynamic_indices");
  PyObject* dynamic = PyUnicode_InternFromString("_dynamo_dynamic_indices");
  PyObject* strict = PyUnicode_InternFromString("_dynamo_strict_unbacked_indices");
  PyObject* unbacked = PyUnicode_InternFromString("_dynamo_unbacked_indices");
  PyObject* ranges = PyUnicode_InternFromString("_dynamo_dynamic_range");
  PyObject* bounds = PyUnicode_InternFromString("_dynamo_unbacked_bounds");
  PyObject* hints = PyUnicode_InternFromString("_dynamo_hint_overrides");
};
const Names& names() {
  static const Names known;
  return known;
}

// The attribute in the tensor's own dictionary, or nullptr. Borrowed.
PyObject* attribute(PyObject* dict, PyObject* name) {
  PyObject* const found = PyDict_GetItemWithError(dict, name);
  if (found == nullptr) PyErr_Clear();
  return found;
}

// Calls f(dimension) for each dimension in the attribute. torch ignores negative dimensions, and those beyond the rank.
void each_dim(PyObject* dict, PyObject* name, int64_t rank, const std::function<void(int64_t)>& f) {
  PyObject* const dims = attribute(dict, name);
  if (dims == nullptr) return;
  const PyRef items = PyRef::steal(PySequence_List(dims));
  if (!items) return PyErr_Clear();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* const item = PyList_GET_ITEM(items.get(), i);
    const int64_t dim = PyLong_Check(item) ? PyLong_AsLongLong(item) : -1;
    PyErr_Clear();
    if (dim >= 0 && dim < rank) f(dim);
  }
}

template <class Into>
void take_number(PyObject* value, Into& into) {
  if (value == nullptr || !PyLong_Check(value)) return;
  const long long number = PyLong_AsLongLong(value);
  if (number == -1 && PyErr_Occurred() != nullptr) return PyErr_Clear();
  into = number;
}

// cresset's functions store {dim: (kind, min, max, typical)}.
void each_own(PyObject* dict, int64_t rank, const std::function<void(int64_t, std::string_view, PyObject*)>& f) {
  PyObject* const table = attribute(dict, names().own);
  if (table == nullptr || !PyDict_Check(table)) return;
  PyObject *key, *value;
  for (Py_ssize_t position = 0; PyDict_Next(table, &position, &key, &value) != 0;) {
    const long dim = PyLong_AsLong(key);
    if (dim >= 0 && dim < rank && PyTuple_Check(value)) f(dim, utf8(PyTuple_GET_ITEM(value, 0)), value);
  }
}

void put_own(PyObject* dict, std::vector<bridge::DimMark>& marks) {
  each_own(dict, static_cast<int64_t>(marks.size()), [&](int64_t dim, std::string_view kind, PyObject* value) {
    bridge::DimMark& mark = marks[static_cast<size_t>(dim)] = {};
    if (kind == "static") mark.policy = sym::Policy::Static;
    mark.unbacked = kind == "unbacked";
    if (kind == "maybe") mark.policy = sym::Policy::Suggested;
    if (kind == "dynamic") mark.policy = sym::Policy::MarkedDynamic;
    take_number(PyTuple_GET_ITEM(value, 1), mark.range.lo);
    take_number(PyTuple_GET_ITEM(value, 2), mark.range.hi);
    take_number(PyTuple_GET_ITEM(value, 3), mark.typical);
  });
}

// _dynamo_dynamic_range: objects with the attributes dim, min and max.
void put_ranges(PyObject* dict, std::vector<bridge::DimMark>& marks) {
  PyObject* const ranges = attribute(dict, names().ranges);
  const PyRef items = ranges != nullptr ? PyRef::steal(PySequence_List(ranges)) : PyRef();
  if (!items) return PyErr_Clear();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* const range = PyList_GET_ITEM(items.get(), i);
    const auto part = [&](const char* name) {
      PyRef value = PyRef::steal(PyObject_GetAttrString(range, name));
      if (!value) PyErr_Clear();
      return value;
    };
    int64_t dim = -1;
    take_number(part("dim").get(), dim);
    if (dim < 0 || dim >= static_cast<int64_t>(marks.size())) continue;
    bridge::DimMark& mark = marks[static_cast<size_t>(dim)];
    if (mark.policy != sym::Policy::MarkedDynamic) continue;
    take_number(part("min").get(), mark.range.lo);
    take_number(part("max").get(), mark.range.hi);
  }
}

// _dynamo_unbacked_bounds: {dim: (min, max)}; _dynamo_hint_overrides: {dim: size}.
void put_tables(PyObject* dict, std::vector<bridge::DimMark>& marks) {
  const auto each_item = [&](PyObject* name, const std::function<void(bridge::DimMark&, PyObject*)>& f) {
    PyObject* const table = attribute(dict, name);
    PyObject *key, *value;
    for (Py_ssize_t position = 0;
         table != nullptr && PyDict_Check(table) && PyDict_Next(table, &position, &key, &value) != 0;) {
      int64_t dim = -1;
      take_number(key, dim);
      if (dim >= 0 && dim < static_cast<int64_t>(marks.size())) f(marks[static_cast<size_t>(dim)], value);
    }
  };
  each_item(names().bounds, [](bridge::DimMark& mark, PyObject* value) {
    if (!mark.unbacked || !PyTuple_Check(value) || PyTuple_GET_SIZE(value) != 2) return;
    take_number(PyTuple_GET_ITEM(value, 0), mark.range.lo);
    take_number(PyTuple_GET_ITEM(value, 1), mark.range.hi);
  });
  each_item(names().hints, [](bridge::DimMark& mark, PyObject* value) { take_number(value, mark.typical); });
}

void put_torch(PyObject* dict, std::vector<bridge::DimMark>& marks) {
  const auto rank = static_cast<int64_t>(marks.size());
  const auto put = [&](PyObject* name, sym::Policy policy) {
    each_dim(dict, name, rank, [&](int64_t dim) { marks[static_cast<size_t>(dim)].policy = policy; });
  };
  put(names().fixed, sym::Policy::Static);
  put(names().maybe, sym::Policy::Suggested);
  put(names().strict, sym::Policy::MarkedDynamic);
  put(names().dynamic, sym::Policy::MarkedDynamic);
  put_ranges(dict, marks);
  each_dim(dict, names().unbacked, rank, [&](int64_t dim) {
    marks[static_cast<size_t>(dim)] = {};
    marks[static_cast<size_t>(dim)].unbacked = true;
  });
  put_tables(dict, marks);
}

// A typical size outside of the range would be no size of the dimension.
void settle(bridge::DimMark& mark, int64_t size, size_t dim, const std::string& name) {
  if (mark.typical && (*mark.typical < mark.range.lo || *mark.typical > mark.range.hi)) mark.typical.reset();
  if (size >= mark.range.lo && size <= mark.range.hi) return;
  const std::string high = mark.range.hi == sym::Interval::kPosInf ? "inf" : std::to_string(mark.range.hi);
  set_error(
      "ConstraintError",
      fmt::format("cresset: {}.size({}) is {}, outside of the range [{}, {}] of its mark; remedy: mark the dimension "
                  "with a range that has all of its sizes",
                  name, dim, size, mark.range.lo, high));
  throw PythonError{};
}

}  // namespace

void note_marks() { marks_noted = true; }

bool may_have_marks() {
  static PyObject* const name = PyUnicode_InternFromString("torch._dynamo.decorators");
  if (!marks_noted) {
    PyObject* const modules = PyImport_GetModuleDict();
    marks_noted = PyDict_Check(modules) && attribute(modules, name) != nullptr;
  }
  return marks_noted;
}

MarkedDims marked_dims(PyObject* tensor) {
  MarkedDims out;
  PyObject* const dict = instance_dict(tensor);
  if (dict == nullptr || PyDict_GET_SIZE(dict) == 0) return out;
  constexpr int64_t kBits = 64;
  const auto put = [&](PyObject* name, uint64_t& into) {
    each_dim(dict, name, kBits, [&](int64_t dim) { into |= uint64_t{1} << dim; });
  };
  put(names().fixed, out.fixed);
  put(names().maybe, out.maybe);
  put(names().strict, out.dynamic);
  put(names().dynamic, out.dynamic);
  put(names().unbacked, out.unbacked);
  each_own(dict, kBits, [&](int64_t dim, std::string_view kind, PyObject*) {
    uint64_t& into = kind == "static"     ? out.fixed
                     : kind == "unbacked" ? out.unbacked
                     : kind == "maybe"    ? out.maybe
                                          : out.dynamic;
    into |= uint64_t{1} << dim;
  });
  return out;
}

std::vector<bridge::DimMark> dim_marks(PyObject* python, const at::Tensor& tensor, const std::string& name) {
  std::vector<bridge::DimMark> marks;
  if (!marked_dims(python).any()) return marks;
  PyObject* const dict = instance_dict(python);
  marks.resize(static_cast<size_t>(tensor.dim()));
  put_torch(dict, marks);
  put_own(dict, marks);
  for (size_t d = 0; d < marks.size(); ++d) settle(marks[d], tensor.size(static_cast<int64_t>(d)), d, name);
  return marks;
}

}  // namespace cresset::frontend
