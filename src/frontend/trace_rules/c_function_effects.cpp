// size: table
#include "frontend/trace_rules/c_function_effects.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/eval/hooks.h"
#include "frontend/trace_rules/call_modes.h"

namespace cresset::frontend {

namespace {

using Names = std::unordered_set<std::string_view>;

// Mutating methods of list, dict, set, deque and related types. All other methods of these types count as reads.
const Names kWriters = {"append", "extend",     "insert",     "add",         "update",
                        "clear",  "appendleft", "extendleft", "__setitem__", "discard"};
const Names kReadWriters = {"pop",
                            "popitem",
                            "remove",
                            "sort",
                            "reverse",
                            "setdefault",
                            "popleft",
                            "rotate",
                            "__iadd__",
                            "__imul__",
                            "__delitem__",
                            "__ior__",
                            "__iand__",
                            "__isub__",
                            "__ixor__",
                            "move_to_end",
                            "difference_update",
                            "intersection_update",
                            "symmetric_difference_update",
                            "__missing__"};
// Methods which create objects without inspecting their arguments.
const Names kSilent = {"__init__", "__new__", "__init_subclass__", "__class_getitem__"};

// Methods that inspect a class.
const Names kAsksClass = {"__instancecheck__", "__subclasscheck__", "mro"};

const Names kUntraceableBuiltins = {"print",   "input",      "open",    "exec",   "eval",
                                    "compile", "breakpoint", "globals", "locals", "vars"};
const Names kModules = {"builtins",  "math",       "cmath",       "operator",     "_operator",    "itertools",
                        "functools", "_functools", "collections", "_collections", "_abc",         "abc",
                        "_weakref",  "weakref",    "copyreg",     "typing",       "_typing",      "_thread",
                        "enum",      "types",      "inspect",     "contextlib",   "_contextvars", "_struct",
                        "_warnings", "_imp",       "_heapq",      "_bisect",      "string",       "_string",
                        "re",        "_sre",       "opcode"};
// Functions which mutate a container as their first argument.
const std::unordered_map<std::string_view, Names> kChangeFirst = {
    {"_heapq",
     {"heappush", "heappop", "heapify", "heapreplace", "heappushpop", "_heappop_max", "_heapify_max",
      "_heapreplace_max"}},
    {"_bisect", {"insort", "insort_left", "insort_right"}},
    {"_operator",
     {"setitem", "delitem", "iadd", "iand", "iconcat", "ifloordiv", "ilshift", "imatmul", "imod", "imul", "ior", "ipow",
      "irshift", "isub", "itruediv", "ixor"}},
    {"_collections", {"_count_elements"}}};
// Functions of these modules whose effects or results no guard and no side effect covers.
const Names kEffects = {"warn_explicit", "_abc_register", "_abc_reset_registry", "getweakrefcount", "getweakrefs"};
// cresset's own functions for programs under capture (control.h).
const Names kControl = {"is_capturing",   "is_compiling",    "note_reentrant", "end_piece",
                        "captured_graph", "captured_guards", "size_text"};
// Functions of `sys` that read constant state.
const Names kSysReads = {"intern", "getsizeof", "getdefaultencoding", "is_finalizing"};
// Functions of torch's C module that change or read unguarded state. Also functions whose results have data-dependent
// sizes which torch's code reads from memory.
const Names kUntraceableTorch = {"manual_seed",
                                 "seed",
                                 "initial_seed",
                                 "set_state",
                                 "get_state",
                                 "_set_default_tensor_type",
                                 "_set_default_dtype",
                                 "set_num_threads",
                                 "default_generator",
                                 "set_flush_denormal",
                                 "requires_grad_",
                                 "register_hook",
                                 "_register_hook",
                                 "backward",
                                 "run_backward",
                                 "share_memory_",
                                 "set_",
                                 "retain_grad",
                                 "_set_deterministic_algorithms",
                                 "register_post_accumulate_grad_hook",
                                 "_pad_packed_sequence",
                                 "_is_view",
                                 "_backward"};

// Functions `_cuda_*` of torch's C module whose results do not change while a program runs, or are compared before each
// call (the current device). The rest of them change or read the state of the device: streams, memory, settings.
const Names kCudaConstants = {"_cuda_init",         "_cuda_getDeviceCount",      "_cuda_getDevice",
                              "_cuda_getArchFlags", "_cuda_getCompiledVersion",  "_cuda_canDeviceAccessPeer",
                              "_cuda_isInBadFork",  "_cuda_getAllocatorBackend", "_cuda_isCurrentStreamCapturing"};

bool is_untraceable_in_torch(std::string_view name) {
  return kUntraceableTorch.count(name) != 0 || (name.starts_with("_cuda_") && kCudaConstants.count(name) == 0);
}

// A class of torch's; null: this build of torch lacks it.
PyObject* optional_class(const char* module, const char* name) {
  PyObject* const found = PyObject_GetAttrString(import_module(module).get(), name);
  if (found == nullptr) PyErr_Clear();
  return found;
}

// Streams, events and recorded graphs of a device: a method enqueues work or waits for it.
bool is_of_queues(PyTypeObject* type, std::string_view name) {
  static const auto& classes =
      *new std::array{optional_class("torch", "Stream"), optional_class("torch", "Event"),
                      optional_class("torch._C", "_CudaEventBase"), optional_class("torch._C", "_CUDAGraph")};
  static const Names kReads = {"__eq__",  "__ne__",  "__hash__", "__repr__",
                               "__str__", "__new__", "__init__", "is_capturing"};
  const auto inherits = [&](PyObject* its) {
    return its != nullptr && PyType_Check(its) && PyType_IsSubtype(type, (PyTypeObject*)its) != 0;
  };
  return kReads.count(name) == 0 && std::any_of(classes.begin(), classes.end(), inherits);
}

// Objects for communication with other processes: reducers, process groups, stores, futures. Every call is a side
// effect, independent of its arguments, except queries of constant properties of a group.
bool is_of_processes(std::string_view module, std::string_view name) {
  static const Names kFixed = {"rank", "size", "name", "getBackendName", "_resolve_process_group", "get_debug_level"};
  const bool distributed = module.starts_with("torch._C._distributed") || module.starts_with("torch.distributed");
  return distributed && kFixed.count(name) == 0 && !name.starts_with("__");
}

bool is_torch(std::string_view module) { return module == "torch" || module.substr(0, 6) == "torch."; }

bool is_changeable(PyObject* object) {
  return (is_container(object) && !PyTuple_Check(object)) || PyByteArray_Check(object);
}

bool is_value_type(PyTypeObject* type) {
  return type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type || type == &PyBytes_Type ||
         type == &PyBool_Type || type == &PyComplex_Type || type == &PyTuple_Type || type == &PyRange_Type ||
         type == &PySlice_Type || type == Py_TYPE(Py_None) || type == &PyFrozenSet_Type;
}

CCall method_of(PyObject* self, const char* name, size_t first) {
  CCall call{CEffect::Pure, self, name, first};
  const std::string_view n = name;
  if (n == "__init__" && is_changeable(self)) return call.effect = CEffect::Writes, call;  // it fills the container
  if (kSilent.count(name) != 0) return call;
  if (n == "__setattr__" || n == "__delattr__") return call.effect = CEffect::SetsAttribute, call;
  if (n == "__getattribute__") return call.effect = CEffect::GetsAttribute, call;
  if (is_changeable(self)) {
    const bool may_insert = n == "__getitem__" && is_defaultdict(self);
    call.effect = may_insert                      ? CEffect::ReadsAndWrites
                  : kWriters.count(name) != 0     ? CEffect::Writes
                  : kReadWriters.count(name) != 0 ? CEffect::ReadsAndWrites
                                                  : CEffect::Reads;
    return call;
  }
  PyTypeObject* type = Py_TYPE(self);
  if (PyType_Check(self) && kAsksClass.count(n) != 0) return call.effect = CEffect::Reads, call;
  if (is_value_type(type) || PyTuple_Check(self)) return call.effect = CEffect::Reads, call;
  if (is_tensor(self))
    return call.effect = kUntraceableTorch.count(name) != 0 ? CEffect::Untraceable : CEffect::Pure, call;
  const std::string module = module_of((PyObject*)type);
  if (module == "_contextvars" && n == "run") return call.effect = CEffect::Untraceable, call;
  if (module == "functools" && n.starts_with("cache_"))
    return call.effect = CEffect::Untraceable, call;  // of lru_cache
  if (n == "add_note" && PyExceptionInstance_Check(self)) return call.effect = CEffect::Untraceable, call;
  if (n == "__setstate__") return call.effect = CEffect::Untraceable, call;
  if (module == "_thread") return call.effect = CEffect::Untraceable, call;  // locks
  if (is_of_processes(module, n) || is_of_queues(type, n)) return call.effect = CEffect::Untraceable, call;
  if (is_torch(module)) return call.effect = is_untraceable_in_torch(n) ? CEffect::Untraceable : CEffect::Pure, call;
  if (kModules.count(module) != 0) return call.effect = CEffect::Reads, call;
  call.effect = n.substr(0, 2) == "__" ? CEffect::Reads : CEffect::Untraceable;
  return call;
}

// torch sets `__module__` only for its public functions (not for torch._VF.unique_dim).
bool is_function_of_torch(PyObject* callable, const char* name, std::string_view module) {
  if (!module.empty() || !is_c_function(callable)) return is_torch(module);
  static PyObject* const functions = private_attribute("torch._C", "_VariableFunctionsClass");
  const PyRef found = PyRef::steal(PyObject_GetAttrString(functions, name));
  if (!found) PyErr_Clear();
  return found.get() == callable;
}

// all(x > 0), max(losses): the function reads the truth values of tensors.
bool asks_tensors(std::string_view name, PyObject* const* args, Py_ssize_t nargs) {
  static const Names kAsking = {"any", "all", "max", "min", "sorted"};
  if (kAsking.count(name) == 0 || nargs == 0) return false;
  if (std::any_of(args, args + nargs, is_tensor)) return true;
  if (!PyList_CheckExact(args[0]) && !PyTuple_CheckExact(args[0])) return false;
  PyObject** const items = PySequence_Fast_ITEMS(args[0]);
  return std::any_of(items, items + PySequence_Fast_GET_SIZE(args[0]), is_tensor);
}

CCall function_of(PyObject* callable, const char* name, PyObject* const* args, Py_ssize_t nargs) {
  const std::string module = module_of(callable);
  CCall call{CEffect::Reads, nullptr, name, 0};
  const std::string_view n = name;
  if (module == "builtins") {
    if (n == "getattr" || n == "hasattr") call.effect = CEffect::GetsAttribute;
    if (n == "setattr" || n == "delattr") call.effect = CEffect::SetsAttribute;
    if (kUntraceableBuiltins.count(n) != 0 || asks_tensors(n, args, nargs)) call.effect = CEffect::Untraceable;
    return call;
  }
  if (is_of_processes(module, n)) return call.effect = CEffect::Untraceable, call;
  if (is_function_of_torch(callable, name, module))
    return call.effect = is_untraceable_in_torch(n) ? CEffect::Untraceable : CEffect::Pure, call;
  if (module == python_names::kBinding && kControl.count(n) != 0) return call.effect = CEffect::Pure, call;
  if (module == "sys" && kSysReads.count(n) != 0) return call;
  if (module == "posix" && n == "fspath") return call;  // returns a str unchanged
  if (module == python_names::kBinding)
    return call.effect = n == "_assign" ? CEffect::Untraceable : CEffect::Pure, call;
  if (module.empty() || kModules.count(module) == 0 || kEffects.count(n) != 0) call.effect = CEffect::Untraceable;
  const auto changers = kChangeFirst.find(module);
  if (changers == kChangeFirst.end() || changers->second.count(n) == 0) return call;
  call.by_arguments = true;
  if (nargs == 0 || !is_changeable(args[0])) return call;
  call.effect = CEffect::ReadsAndWrites;
  call.self = args[0];
  call.first = 1;
  return call;
}

}  // namespace

static bool is_autograd_function(PyObject* type) {
  static PyObject* const base = private_attribute("torch._C", "_FunctionBase");
  return PyType_IsSubtype((PyTypeObject*)type, (PyTypeObject*)base) != 0;
}

// dict.fromkeys(keys), int.from_bytes(data), chain.from_iterable(lists): class methods of builtin types. From CPython
// 3.12 on some of these types are heap types.
static bool makes_instance(PyObject* function, PyObject* type) {
  const bool is_fixed =
      !is_heap_type((PyTypeObject*)type) || (((PyTypeObject*)type)->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) != 0;
  return (PyCFunction_GET_FLAGS(function) & METH_CLASS) != 0 && is_fixed && kModules.count(module_of(type)) != 0;
}

// Whether calls of instances run a Python function, which is evaluated.
static bool is_called_in_python(PyTypeObject* type) {
  static PyObject* const name = PyUnicode_InternFromString("__call__");
  PyObject* method = is_heap_type(type) ? _PyType_Lookup(type, name) : nullptr;
  return method != nullptr && (PyFunction_Check(method) || is_heap_type(Py_TYPE(method)));
}

// Whether class statements lead from the type to a known type, whose C constructor has no side effects.
static bool is_made_in_python(PyTypeObject* type) {
  while (is_heap_type(type) && (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) == 0 &&
         PyDict_GetItemString(type_dict(type), "__module__") != nullptr && type->tp_base != nullptr)
    type = type->tp_base;
  const std::string module = module_of((PyObject*)type);
  return is_torch(module) || kModules.count(module) != 0;
}

// numpy.lcm(4, 6), numpy.float64(0.5). Arrays are excluded: `out` would be written, and tensors may share their memory.
static bool is_numpy_function_of_numbers(PyObject* callable, PyObject* const* args, Py_ssize_t nargs) {
  if (std::string_view(Py_TYPE(callable)->tp_name) != "numpy.ufunc" &&
      !(PyType_Check(callable) && is_numpy_scalar_type((PyTypeObject*)callable)))
    return false;
  return std::all_of(args, args + nargs, [](PyObject* arg) {
    return PyLong_CheckExact(arg) || PyFloat_CheckExact(arg) || is_numpy_scalar(arg);
  });
}

static CCall classify(PyObject* callable, PyObject* const* args, Py_ssize_t nargs) {
  if (is_c_function(callable)) {
    PyObject* self = PyCFunction_GET_SELF(callable);
    const char* name = ((PyCFunctionObject*)callable)->m_ml->ml_name;
    if (self != nullptr && PyType_Check(self) && (kSilent.count(name) != 0 || kAsksClass.count(name) != 0))
      return {CEffect::Reads};
    if (self != nullptr && PyType_Check(self) && makes_instance(callable, self)) return {CEffect::Reads};
    if (self != nullptr && PyType_Check(self) && std::string_view(name) == "apply" && is_autograd_function(self))
      return {CEffect::Reads};  // its forward is evaluated; with gradients the call is not captured
    if (self != nullptr && !PyModule_Check(self) && !PyType_Check(self) && module_of(callable).empty())
      return method_of(self, name, 0);
    return function_of(callable, name, args, nargs);
  }
  PyTypeObject* type = Py_TYPE(callable);
  if (type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type || type == &PyClassMethodDescr_Type) {
    if (nargs == 0) return {};
    return method_of(args[0], PyUnicode_AsUTF8(((PyDescrObject*)callable)->d_name), 1);
  }
  if (is_method_wrapper(callable)) {  // object().__setattr__, ...
    const auto [descriptor, self] = decompose_wrapper(callable);
    return method_of(self, PyUnicode_AsUTF8(((PyDescrObject*)descriptor)->d_name), 0);
  }
  if (PyMethod_Check(callable)) {  // a bound C callable
    PyObject* function = PyMethod_GET_FUNCTION(callable);
    if (!PyFunction_Check(function)) return classify(function, args, nargs);
    return {CEffect::Reads};
  }
  if (is_numpy_function_of_numbers(callable, args, nargs)) return {CEffect::Reads};
  if (PyType_Check(callable)) {
    const std::string module = module_of(callable);
    const bool known = is_torch(module) || kModules.count(module) != 0;
    return {known || is_made_in_python((PyTypeObject*)callable) ? CEffect::Reads : CEffect::Untraceable};
  }
  // A compiled function inside another compiled function acts as its original function, which is evaluated.
  if (cresset_eval_inside(callable) != nullptr) return {};
  const std::string module = module_of((PyObject*)type);
  if (is_torch(module) || kModules.count(module) != 0 || PyFunction_Check(callable)) return {CEffect::Reads};
  // A Python `__call__` of the class is evaluated.
  return {is_called_in_python(type) ? CEffect::Reads : CEffect::Untraceable};
}

CCall classify_call(PyObject* callable, PyObject* const* args, Py_ssize_t nargs) {
  const CCall call = classify(callable, args, nargs);
  return call.effect == CEffect::Untraceable && is_allowed(callable) ? CCall{} : call;
}

std::string describe_callable(PyObject* callable) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(callable, "__qualname__"));
  if (!name) PyErr_Clear();
  const std::string module = module_of(callable);
  const std::string own = name ? std::string(utf8(name.get(), "")) : std::string(Py_TYPE(callable)->tp_name);
  return module.empty() || module == "builtins" ? own : module + "." + own;
}

}  // namespace cresset::frontend
