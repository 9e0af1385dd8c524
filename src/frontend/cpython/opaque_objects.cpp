#include "frontend/cpython/opaque_objects.h"

#include <c10/util/flat_hash_map.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "frontend/cpython/library_values.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/eval/class_version.h"

namespace cresset::frontend {
namespace {

bool is_made_by_class_statement(const PyTypeObject* type) {
  return is_heap_type(type) && (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) == 0;
}

// Whether a class adds C members to its base, other than __dict__, __weakref__ and __slots__.
bool adds_members(PyTypeObject* type) {
  const PyTypeObject* base = type->tp_base;
  Py_ssize_t explained = base->tp_basicsize;
  if (type->tp_dictoffset != 0 && base->tp_dictoffset == 0) explained += static_cast<Py_ssize_t>(sizeof(PyObject*));
  if (type->tp_weaklistoffset != 0 && base->tp_weaklistoffset == 0)
    explained += static_cast<Py_ssize_t>(sizeof(PyObject*));
  if (PyObject* slots = ((PyHeapTypeObject*)type)->ht_slots)
    explained += PyTuple_GET_SIZE(slots) * static_cast<Py_ssize_t>(sizeof(PyObject*));
  return type->tp_basicsize > explained;
}

std::string_view module_of(PyTypeObject* type) {
  const std::string_view name = type->tp_name;
  const size_t dot = name.rfind('.');
  if (dot != std::string_view::npos) return name.substr(0, dot);
  PyObject* module = type_dict(type) != nullptr ? PyDict_GetItemString(type_dict(type), "__module__") : nullptr;
  const char* text = module != nullptr && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  if (text == nullptr) return PyErr_Clear(), "builtins";
  return text;
}

// sys.version_info, time.struct_time: tuples with named items.
bool is_struct_sequence(PyTypeObject* type) {
  return type->tp_base == &PyTuple_Type && type_dict(type) != nullptr &&
         PyDict_GetItemString(type_dict(type), "n_sequence_fields") != nullptr;
}

// C types whose instances are immutable or covered by guards.
bool is_known(PyTypeObject* type) {
  static const std::unordered_set<std::string_view> mutable_builtins = {
      "bytearray",       "memoryview",         "frame",           "managedbuffer",  "traceback",
      "async_generator", "bytearray_iterator", "memory_iterator", "anext_awaitable"};
  static const std::unordered_set<std::string_view> modules = {"re",
                                                               "_sre",
                                                               "datetime",
                                                               "decimal",
                                                               "_struct",
                                                               "typing",
                                                               "_typing",
                                                               "types",
                                                               "enum",
                                                               "_abc",
                                                               "abc",
                                                               "operator",
                                                               "_operator",
                                                               "functools",
                                                               "_functools",
                                                               "collections",
                                                               "_collections_abc",
                                                               "itertools",
                                                               "weakref",
                                                               "_weakref",
                                                               "contextvars",
                                                               "_contextvars",
                                                               "_collections",
                                                               "string",
                                                               "_string",
                                                               "inspect",
                                                               "_thread",
                                                               "zoneinfo",
                                                               "cresset",
                                                               "cresset._C"};
  if (is_struct_sequence(type)) return true;
  const std::string_view module = module_of(type), name = type->tp_name;
  if (name == "torch._C.Generator") return false;  // a random generator: each draw changes it
  if (module == "torch" || module.starts_with("torch.") || module.starts_with("numpy.dtypes")) return true;
  if (module == "numpy") return name == "numpy.dtype" || name == "numpy.ufunc";
  return module == "builtins" ? mutable_builtins.count(name) == 0 : modules.count(module) != 0;
}

// Caches the answer for types which live as long as the process.
bool is_known_for_good(PyTypeObject* type) {
  static auto& known = *new ska::flat_hash_map<PyTypeObject*, bool>;
  const auto [found, fresh] = known.emplace(type, false);
  if (fresh) {
    Py_INCREF(type);
    found->second = is_known(type);
  }
  return found->second;
}

// Whether the class is a pybind11 class of torch. All its data is in the base class that pybind11 adds.
bool is_binding_of_torch(PyTypeObject* type) {
  if (Py_IS_TYPE((PyObject*)type, &PyType_Type)) return false;
  return std::string_view(Py_TYPE(type)->tp_name) == "pybind11_type" && module_of(type).starts_with("torch.");
}

bool is_foreign_type(PyTypeObject* type) {
  while (is_made_by_class_statement(type)) {
    if (is_binding_of_torch(type)) return false;
    if (adds_members(type) && module_of(type).substr(0, 5) != "torch") return true;
    type = type->tp_base;
  }
  return !is_known_for_good(type);
}

// Caches the answer for static types.
bool is_foreign_for_good(PyTypeObject* type) {
  const bool common = type == &PyUnicode_Type || type == &PyLong_Type || type == &PyTuple_Type ||
                      type == &PyDict_Type || type == Py_TYPE(Py_None) || type == &PyBool_Type ||
                      type == &PyType_Type || type == &PyCFunction_Type || type == &PyList_Type ||
                      type == &PyMethodDescr_Type;
  if (common) return false;
  static auto& known = *new ska::flat_hash_map<PyTypeObject*, bool>;
  const auto [found, fresh] = known.emplace(type, false);
  if (fresh) {
    const bool is_proxy = type == &_PyWeakref_ProxyType || type == &_PyWeakref_CallableProxyType;
    found->second = is_proxy || (!is_numpy_scalar_type(type) && is_foreign_type(type));
  }
  return found->second;
}

int take_any(PyObject* object, void* held) {
  static_cast<std::vector<PyObject*>*>(held)->push_back(object);
  return 0;
}

}  // namespace

// Caches the answer for a heap type by its version.
static bool is_foreign_class(PyTypeObject* type) {
  struct Answer {
    unsigned version;
    bool is_foreign;
  };
  static std::array<Answer, 256> known{};  // under the GIL
  const unsigned version = cresset_class_version(type);
  Answer& answer = known[version % known.size()];
  if (version == 0 || answer.version != version)
    answer = {version, !is_numpy_scalar_type(type) && is_foreign_type(type)};
  return answer.is_foreign;
}

bool is_foreign(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  if (!is_heap_type(type)) return is_foreign_for_good(type);
  return !is_plain_tensor(object) && is_foreign_class(type);
}

bool is_inference_region(PyObject* object) {
  static PyObject* const region = private_attribute("torch._C", "_InferenceMode");
  return (PyObject*)Py_TYPE(object) == region;
}

bool can_be_opaque(PyObject* object) {
  if (is_plain_tensor(object)) return false;
  if (is_numpy_scalar(object)) return !std::string_view(Py_TYPE(object)->tp_name).starts_with("numpy.bool");
  if (PyBytes_CheckExact(object)) return PyBytes_GET_SIZE(object) > 1;  // shorter bytes objects are singletons
  return is_library_value(object) || is_foreign(object) || is_inference_region(object) ||
         PyContextToken_CheckExact(object);
}

static bool may_hold(PyObject* object) {
  constexpr unsigned long kContainers = Py_TPFLAGS_TUPLE_SUBCLASS | Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_DICT_SUBCLASS;
  return (PyType_GetFlags(Py_TYPE(object)) & kContainers) != 0 || PySlice_Check(object);
}

static bool holds_any(PyObject* container, const std::function<bool(PyObject*)>& is, int depth) {
  constexpr int kDeepest = 6;
  const auto one = [&](PyObject* item) {
    return is(item) || (depth < kDeepest && may_hold(item) && holds_any(item, is, depth + 1));
  };
  if (PyTuple_Check(container) || PyList_Check(container)) {
    PyObject** const items = PySequence_Fast_ITEMS(container);
    return std::any_of(items, items + PySequence_Fast_GET_SIZE(container), one);
  }
  if (PySlice_Check(container)) {
    const auto* slice = (const PySliceObject*)container;
    return one(slice->start) || one(slice->stop) || one(slice->step);
  }
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Check(container) && PyDict_Next(container, &position, &key, &value))
    if (one(value)) return true;
  return false;
}

bool holds_any(PyObject* container, const std::function<bool(PyObject*)>& is) {
  return may_hold(container) && holds_any(container, is, 0);
}

static bool hands_items_on(std::string_view method, const PyTypeObject* owner) {
  static auto* const deque = (PyTypeObject*)module_attribute("collections", "deque");
  const bool compares = method == "index" || method == "count" || method == "remove" || method == "sort";
  const bool is_container = owner == &PyList_Type || owner == &PyTuple_Type || owner == &PyDict_Type ||
                            owner == &PySet_Type || owner == &PyFrozenSet_Type || owner == deque;
  return is_container && !compares && !method.starts_with("__");
}

bool hands_items_on(PyObject* callable) {
  static const std::unordered_set<std::string_view> functions = {
      "len", "iter", "next", "id", "isinstance", "issubclass", "getattr", "setattr", "hasattr", "callable"};
  if (is_c_function(callable)) {
    PyObject* const self = PyCFunction_GET_SELF(callable);
    const std::string_view name = ((PyCFunctionObject*)callable)->m_ml->ml_name;
    return self != nullptr && !PyModule_Check(self) ? hands_items_on(name, Py_TYPE(self)) : functions.count(name) != 0;
  }
  if (Py_IS_TYPE(callable, &PyMethodDescr_Type))
    return hands_items_on(((PyMethodDescrObject*)callable)->d_method->ml_name, PyDescr_TYPE(callable));
  return callable != (PyObject*)&PyUnicode_Type && !Py_IS_TYPE(callable, &PyWrapperDescr_Type);
}

bool makes_foreign(PyTypeObject* type) {
  if (is_made_by_class_statement(type) || is_known_for_good(type)) return false;
  if (module_of(type) != "numpy") return true;
  static PyObject* const scalars = module_attribute("numpy", "generic");
  return PyType_IsSubtype(type, (PyTypeObject*)scalars) == 0;
}

bool derives_in_python(const PyTypeObject* type, const PyTypeObject* base) {
  while (type != base && type != nullptr && is_made_by_class_statement(type)) type = type->tp_base;
  return type == base;
}

PyObject* viewed(PyObject* object) {
  static const PyTypeObject* const views[] = {&PyDictKeys_Type,  &PyDictItems_Type,  &PyDictValues_Type,
                                              &PyODictKeys_Type, &PyODictItems_Type, &PyODictValues_Type,
                                              &PyDictProxy_Type};
  if (std::find(std::begin(views), std::end(views), Py_TYPE(object)) == std::end(views)) return nullptr;
  PyObject* inside = nullptr;
  Py_TYPE(object)->tp_traverse(
      object, [](PyObject* held, void* out) { return *static_cast<PyObject**>(out) = held, 0; }, &inside);
  return inside;
}

FunctionCache function_cache(PyObject* function, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  std::vector<PyObject*> held;
  Py_TYPE(function)->tp_traverse(function, &take_any, &held);
  const PyRef attributes = PyRef::steal(PyObject_GetAttrString(function, "__dict__"));
  if (!attributes) PyErr_Clear();
  FunctionCache out;
  PyObject* mark = nullptr;  // separates positional and keyword arguments
  for (PyObject* part : held) {
    if (PyDict_CheckExact(part) && part != attributes.get()) out.cache = PyRef::borrow(part);
    if (Py_IS_TYPE(part, &PyBaseObject_Type)) mark = part;
  }
  if (nargs == 1 && kwnames == nullptr && (PyUnicode_CheckExact(args[0]) || PyLong_CheckExact(args[0])))
    return out.key = PyRef::borrow(args[0]), out;
  std::vector<PyObject*> key(args, args + nargs);
  for (Py_ssize_t i = 0; kwnames != nullptr && i < PyTuple_GET_SIZE(kwnames); ++i) {
    if (i == 0) key.push_back(mark);
    key.push_back(PyTuple_GET_ITEM(kwnames, i));
    key.push_back(args[nargs + i]);
  }
  if (std::find(key.begin(), key.end(), nullptr) != key.end()) return {};
  out.key = checked(PyTuple_New(static_cast<Py_ssize_t>(key.size())));
  for (size_t i = 0; i < key.size(); ++i)
    PyTuple_SET_ITEM(out.key.get(), static_cast<Py_ssize_t>(i), Py_NewRef(key[i]));
  return out;
}

}  // namespace cresset::frontend
