#include "frontend/values/constant_arrays.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "frontend/cpython/containers.h"
#include "frontend/cpython/items.h"
#include "frontend/cpython/observed_locals.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {
namespace {

bool is_array(PyObject* object) { return std::string_view(Py_TYPE(object)->tp_name) == "numpy.ndarray"; }

PyTypeObject* array_type() {
  static PyObject* const type = module_attribute("numpy", "ndarray");
  return (PyTypeObject*)type;
}

PyRef attribute_or_null(PyObject* object, const char* name) {
  PyRef value = PyRef::steal(PyObject_GetAttrString(object, name));
  if (!value) PyErr_Clear();
  return value;
}

using Names = std::unordered_set<std::string_view>;

// C functions which create arrays. numpy's Python functions call them.
const Names kMakers = {"arange",
                       "array",
                       "asanyarray",
                       "asarray",
                       "ascontiguousarray",
                       "asfortranarray",
                       "empty",
                       "zeros",
                       "normalize_axis_index",
                       "promote_types",
                       "interp",
                       "correlate",
                       "correlate2",
                       "_monotonicity",
                       "bincount"};

// Dispatched functions that read or write files, or call functions passed as arguments.
const Names kOthers = {"save",         "savez",   "savez_compressed", "savetxt",         "loadtxt",
                       "genfromtxt",   "load",    "fromfile",         "fromregex",       "fromstring",
                       "frombuffer",   "memmap",  "apply_along_axis", "apply_over_axes", "piecewise",
                       "fromfunction", "fromiter"};

// Array methods which expose the memory of an array, or write its data elsewhere.
const Names kMethodsThatTell = {"tofile",
                                "dump",
                                "setflags",
                                "resize",
                                "__dlpack__",
                                "__setstate__",
                                "__array_ufunc__",
                                "__array_function__",
                                "getfield",
                                "__dlpack_device__",
                                "__array_finalize__"};

// Methods without numbers among their arguments.
const Names kOfAny = {"__deepcopy__"};

bool is_numpy_module(PyObject* object) {
  const std::string name = module_of(object);
  return name == "numpy" || name == "numpy.linalg" || name == "numpy.fft";
}

bool has_name_in(PyObject* callable, const Names& names) {
  const PyRef name = attribute_or_null(callable, "__name__");
  return !name || !PyUnicode_Check(name.get()) || names.count(utf8(name.get())) != 0;
}

// Whether the ufunc belongs to numpy. numpy.frompyfunc creates other ufuncs, which call Python functions.
bool is_ufunc(PyObject* object) {
  if (std::string_view(Py_TYPE(object)->tp_name) != "numpy.ufunc") return false;
  static PyObject* const numpy = import_module("numpy").release();
  const PyRef name = attribute_or_null(object, "__name__");
  if (!name) return false;
  const PyRef found = PyRef::steal(PyObject_GetAttr(numpy, name.get()));
  if (!found) PyErr_Clear();
  return found.get() == object;
}

bool is_type_of_numbers(PyObject* object) {
  return object == (PyObject*)&PyLong_Type || object == (PyObject*)&PyFloat_Type || object == (PyObject*)&PyBool_Type ||
         object == (PyObject*)&PyComplex_Type || is_numpy_scalar_type((PyTypeObject*)object);
}

}  // namespace

bool ConstantArrays::is_operator(PyObject* callable) { return module_of(callable) == "_operator"; }

PyObject* ConstantArrays::root_of(PyObject* object) const {
  if (object == nullptr || !is_array(object)) return nullptr;
  PyRef at = PyRef::borrow(object);
  for (;;) {
    if (const auto found = roots_.find(at.get()); found != roots_.end()) return found->first;
    PyRef base = attribute_or_null(at.get(), "base");
    if (!base || !is_array(base.get())) return nullptr;
    at = std::move(base);
  }
}

static bool holds_constant(const ConstantArrays& arrays, PyObject* object, int depth) {
  constexpr int kDeepest = 4;
  if (arrays.knows(object)) return true;
  if (depth == kDeepest || !(PyTuple_CheckExact(object) || PyList_CheckExact(object))) return false;
  PyObject** const items = PySequence_Fast_ITEMS(object);
  return any_among(items, items + PySequence_Fast_GET_SIZE(object),
                   [&](PyObject* item) { return holds_constant(arrays, item, depth + 1); });
}

bool ConstantArrays::knows_any(const CressetCall& call) const {
  if (!any()) return false;
  const auto is_known = [&](PyObject* o) { return holds_constant(*this, o, 0); };
  if (PyCFunction_Check(call.callable) && PyCFunction_GET_SELF(call.callable) != nullptr &&
      knows(PyCFunction_GET_SELF(call.callable)))
    return true;
  return any_among(call.args, call.args + cresset_count_arguments(&call), is_known);
}

bool ConstantArrays::is_same(PyObject* object, const Varies& varies) const {
  if (is_symbolic_string(object) || (is_symbolic_number(object) && is_unspecialized(object)) || varies(object))
    return false;
  if (is_symbolic_number(object)) return true;
  if (object == Py_None || object == Py_Ellipsis || PyBool_Check(object) || PyLong_CheckExact(object) ||
      PyFloat_CheckExact(object) || PyComplex_CheckExact(object) || PyUnicode_CheckExact(object) ||
      PyBytes_CheckExact(object) || is_numpy_scalar(object))
    return true;
  if (PyType_Check(object)) return is_type_of_numbers(object);
  if (PySlice_Check(object)) {
    const auto* const slice = (const PySliceObject*)object;
    return is_same(slice->start, varies) && is_same(slice->stop, varies) && is_same(slice->step, varies);
  }
  if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
    PyObject** const items = PySequence_Fast_ITEMS(object);
    return all_among(items, items + PySequence_Fast_GET_SIZE(object),
                     [&](PyObject* item) { return is_same(item, varies); });
  }
  if (PyRange_Check(object)) return true;
  if (std::string_view(Py_TYPE(object)->tp_name).starts_with("numpy.dtype") || is_ufunc(object)) return true;
  return knows(object);
}

bool ConstantArrays::are_same(const CressetCall& call, const Varies& varies) const {
  return all_among(call.args, call.args + cresset_count_arguments(&call),
                   [&](PyObject* o) { return is_same(o, varies); });
}

bool ConstantArrays::computes(const CressetCall& call, const Varies& varies) const {
  PyObject* const callable = call.callable;
  const auto is_numpys = [&] {
    if (PyCFunction_Check(callable)) {
      PyObject* const self = PyCFunction_GET_SELF(callable);
      if (self != nullptr && is_array(self)) return knows(self) && !has_name_in(callable, kMethodsThatTell);
      if (self != nullptr && !PyModule_Check(self)) return is_ufunc(self);
      return (is_numpy_module(callable) && !has_name_in(callable, kOthers) && has_name_in(callable, kMakers)) ||
             (is_operator(callable) && knows_any(call));
    }
    const std::string_view type = Py_TYPE(callable)->tp_name;
    if (type == "numpy._ArrayFunctionDispatcher") return is_numpy_module(callable) && !has_name_in(callable, kOthers);
    if (Py_IS_TYPE(callable, &PyMethodDescr_Type))
      return call.nargs > 0 && !has_name_in(callable, kMethodsThatTell) &&
             ((knows(call.args[0]) && PyDescr_TYPE(callable) == array_type()) ||
              (is_ufunc(call.args[0]) && PyDescr_TYPE(callable) == Py_TYPE(call.args[0])));
    if (PyType_Check(callable)) return is_numpy_scalar_type((PyTypeObject*)callable) && knows_any(call);
    return is_ufunc(callable);
  };
  return is_numpys() && (are_same(call, varies) || has_name_in(callable, kOfAny));
}

bool ConstantArrays::makes_tensor(const CressetCall& call, const Varies& varies) const {
  if (!any() || call.nargs == 0) return false;
  const auto definition = [](const char* name) {
    const PyRef functions = PyRef::borrow(module_attribute("torch._C", "_VariableFunctions"));
    const PyRef function = checked(PyObject_GetAttrString(functions.get(), name));
    return ((PyCFunctionObject*)function.get())->m_ml;
  };
  static const PyMethodDef* const known[] = {definition("from_numpy"), definition("tensor"), definition("as_tensor")};
  if (!PyCFunction_Check(call.callable) ||
      std::find(std::begin(known), std::end(known), ((PyCFunctionObject*)call.callable)->m_ml) == std::end(known))
    return false;
  return knows_any(call) && is_same(call.args[0], varies);
}

bool ConstantArrays::makes_string(const CressetCall& call) const {
  if (!any()) return false;
  static PyObject* const makers_of_text[] = {
      (PyObject*)&PyUnicode_Type, module_attribute("builtins", "repr"), module_attribute("builtins", "ascii"),
      module_attribute("builtins", "format"), module_attribute("builtins", "print")};
  return std::find(std::begin(makers_of_text), std::end(makers_of_text), call.callable) != std::end(makers_of_text) &&
         knows_any(call);
}

bool ConstantArrays::add(PyObject* result) {
  if (PyTuple_Check(result) || PyList_CheckExact(result)) {
    PyObject** const items = PySequence_Fast_ITEMS(result);
    return all_among(items, items + PySequence_Fast_GET_SIZE(result), [&](PyObject* item) { return add(item); });
  }
  if (!is_array(result)) return PyObject_TypeCheck(result, array_type()) == 0;
  if (knows(result)) return true;
  const PyRef dtype = checked(PyObject_GetAttrString(result, "dtype"));
  const PyRef kind = checked(PyObject_GetAttrString(dtype.get(), "kind"));
  constexpr std::string_view kPlain = "biufcSUmM";
  if (kPlain.find(utf8(kind.get())) == std::string_view::npos) return false;
  PyRef root = PyRef::borrow(result);
  while (PyRef base = attribute_or_null(root.get(), "base")) {  // the base has no other owner
    if (base.get() == Py_None) break;
    if (!is_array(base.get())) return false;
    root = std::move(base);
  }
  PyObject* const key = root.get();
  roots_.emplace(key, std::move(root));
  return true;
}

// Counts references that disappear with the operation in progress: its operands, and variables that are not read again.
static Py_ssize_t references_of_the_past(PyObject* object, const CressetActivation& innermost) {
  Py_ssize_t count = 0;
  for (const CressetActivation* a = &innermost; a != nullptr; a = a->caller) {
    CressetFrameImage image;
    cresset_eval_image(a, a == &innermost ? CRESSET_AFTER : CRESSET_BEFORE, &image);
    std::vector<uint8_t> live(static_cast<size_t>(image.slot_count));
    if (may_look_at_locals(image) || cresset_eval_live_slots(image.code, image.last, live.data()) < 0) continue;
    for (int i = 0; i < image.slot_count; ++i) count += image.slots[i] == object && live[static_cast<size_t>(i)] == 0;
    if (a == &innermost)
      for (PyObject* const* at = image.stack + image.stack_depth; at < a->stack_top; ++at) count += *at == object;
  }
  return count;
}

bool ConstantArrays::is_only_given(PyObject* array, const CressetActivation& activation) const {
  PyObject* const root = root_of(array);
  if (root == nullptr) return false;
  const Py_ssize_t past = references_of_the_past(array, activation);
  if (array == root) return Py_REFCNT(array) == past + 1;  // the reference in roots_
  const PyRef base = checked(PyObject_GetAttrString(array, "base"));
  constexpr Py_ssize_t kOursAndTheViews = 3;  // roots_, the view's base, and `base`
  return base.get() == root && Py_REFCNT(array) == past &&
         Py_REFCNT(root) == references_of_the_past(root, activation) + kOursAndTheViews;
}

ConstantArrays::Parts ConstantArrays::decompose(PyObject* array) const {
  PyObject* const root = root_of(array);
  if (root == array) {
    static PyObject* const copy = module_attribute(python_names::kSubstitutes, "copy_of_array");
    return {PyRef::borrow(copy), {}, checked(PyObject_CallOneArg(copy, array))};
  }
  static PyObject* const place_of = module_attribute(python_names::kSubstitutes, "place_of_view");
  static PyObject* const view = module_attribute(python_names::kSubstitutes, "view_of_array");
  PyRef place = checked(PyObject_CallFunctionObjArgs(place_of, root, array, nullptr));
  if (place.get() == Py_None) return {};
  return {PyRef::borrow(view), PyRef::borrow(root), std::move(place)};
}

}  // namespace cresset::frontend
