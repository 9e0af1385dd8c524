// Object queries which the C API lacks: instance dictionaries and their versions, tuples of a given type, tensors.
// torch's own headers for Python tensors add ten seconds to a translation unit, so few files include them.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/cpython/py_ref.h"

namespace at {
class Tensor;
}
// torch's own variables, declared as in <torch/csrc/autograd/python_variable.h>, because the type test runs at each
// instruction.
__attribute__((visibility("default"))) extern PyObject* THPVariableClass;
__attribute__((visibility("default"))) extern PyObject* ParameterClass;

namespace cresset::frontend {

// Borrowed; nullptr when the object has no dictionary or has not created it yet.
PyObject* instance_dict(PyObject* object);
// The version changes with the dictionary; 0: changes are not visible. From CPython 3.12 on the lowest bits identify
// watchers, which does no harm. CPython warns that 3.14 removes the version.
inline uint64_t dict_version(PyObject* dict) {
#if PY_VERSION_HEX >= 0x030E0000
  (void)dict;
  return 0;
#else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#if PY_VERSION_HEX >= 0x030D0000
  // A split dictionary may share its values with an object, whose attribute stores bypass the version.
  if (((PyDictObject*)dict)->ma_values != nullptr) return 0;
#endif
  return ((PyDictObject*)dict)->ma_version_tag;
#pragma GCC diagnostic pop
#endif
}
// The class's own namespace, borrowed. From CPython 3.12 on builtin classes do not keep it in tp_dict.
inline PyObject* type_dict(PyTypeObject* type) {
#if PY_VERSION_HEX < 0x030C0000
  return type->tp_dict;
#else
  PyObject* const dict = PyType_GetDict(type);
  Py_XDECREF(dict);  // the class keeps it
  return dict;
#endif
}
// The code of a generator, coroutine or asynchronous generator, running or finished; borrowed.
inline PyObject* generator_code(PyObject* generator) {
#if PY_VERSION_HEX < 0x030C0000
  return (PyObject*)((PyGenObject*)generator)->gi_code;
#else
  PyObject* const code = (PyObject*)PyGen_GetCode((PyGenObject*)generator);
  Py_DECREF(code);  // the generator keeps it
  return code;
#endif
}
// The attribute module.name, kept for the whole process, for static variables. For a standard library module, the
// original attribute and not a user's replacement. Throws PythonError when the attribute is missing.
[[gnu::cold]] PyObject* module_attribute(const char* module, const char* name);
// The same for a name which some torch releases lack. A missing name yields a class without instances and a single
// warning.
[[gnu::cold]] PyObject* private_attribute(const char* module, const char* name);
// Imports a module independently of the running frame's builtins. PyImport_ImportModule calls their `__import__`, and
// the builtins of a namedtuple's `__new__` have none.
[[gnu::cold]] PyRef import_module(const char* name);
// A type created at run time, by a class statement or by C code.
inline bool is_heap_type(const PyTypeObject* type) { return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0; }
// Faster than PyCFunction_Check: the two types cannot be subclassed.
inline bool is_c_function(PyObject* object) {
  return Py_IS_TYPE(object, &PyCFunction_Type) || Py_IS_TYPE(object, &PyCMethod_Type);
}
// The identity of a callable: for a C function its definition, since each read of a C method makes an object of its
// own.
inline const void* definition_of(PyObject* callable) {
  return is_c_function(callable) ? (const void*)((PyCFunctionObject*)callable)->m_ml : callable;
}
// Tests the object's own type without calling Python code. A heap type is never a base class of a static type, and an
// instance of a tensor subclass is no smaller than a tensor.
inline bool is_tensor(PyObject* object) {
  if (object == nullptr) return false;
  PyTypeObject *const type = Py_TYPE(object), *const tensor = (PyTypeObject*)THPVariableClass;
  if (type == tensor || (PyObject*)type == ParameterClass) return true;
  return is_heap_type(type) && type->tp_basicsize >= tensor->tp_basicsize && PyType_IsSubtype(type, tensor) != 0;
}
struct LaidOutAsMethodWrapper {  // CPython's own layout, in descrobject.c
  PyObject_HEAD PyObject* descriptor;
  PyObject* self;
};
bool is_of_method_wrapper_type(PyObject* object);
inline bool is_method_wrapper(PyObject* object) {  // object().__setattr__, ...: C code with its self
  return Py_TYPE(object)->tp_basicsize == sizeof(LaidOutAsMethodWrapper) && is_of_method_wrapper_type(object);
}
struct MethodWrapper {
  PyObject *descriptor, *self;  // borrowed
};
inline MethodWrapper decompose_wrapper(PyObject* wrapper) {  // requires is_method_wrapper
  const auto* const parts = (const LaidOutAsMethodWrapper*)wrapper;
  return {parts->descriptor, parts->self};
}
inline bool is_exact_tensor(PyObject* object) {  // no subclass except Parameter
  return (PyObject*)Py_TYPE(object) == THPVariableClass || (PyObject*)Py_TYPE(object) == ParameterClass;
}
const at::Tensor& tensor_of(PyObject* object);  // requires is_tensor
PyRef python_tensor(const at::Tensor& tensor);  // throws PythonError
bool is_enum_member(PyObject* object);
bool is_equal_by_identity(PyObject* object);  // as a key: equal to no other object
// Whether a function of the program hashes the object. Such a hash may omit data which differs between calls, and may
// have side effects.
bool is_hashed_by_program(PyObject* object);
// Symbolic numbers of captures. Other symbolic numbers (lengths of nested tensors) are ordinary objects. The type slots
// exclude most objects without a call.
inline bool may_be_symbolic(PyObject* object) {
  const PyTypeObject* const type = Py_TYPE(object);
  return is_heap_type(type) && type->tp_as_number != nullptr && type->tp_as_number->nb_bool != nullptr;
}
bool is_symbolic_int(PyObject* object);  // requires may_be_symbolic, like the next two
bool is_symbolic_float(PyObject* object);
bool is_symbolic_bool(PyObject* object);
inline bool is_symint(PyObject* object) { return may_be_symbolic(object) && is_symbolic_int(object); }
inline bool is_symfloat(PyObject* object) { return may_be_symbolic(object) && is_symbolic_float(object); }
inline bool is_symbool(PyObject* object) { return may_be_symbolic(object) && is_symbolic_bool(object); }
inline bool is_symbolic_number(PyObject* object) {  // any of the three
  return may_be_symbolic(object) && (is_symbolic_int(object) || is_symbolic_float(object) || is_symbolic_bool(object));
}
// The UTF-8 string of a str, valid during its lifetime; `otherwise` for other objects and for unencodable strings.
const char* utf8(PyObject* str, const char* otherwise = "?");
// A torch.Tensor or a Parameter, but no other subclass; false for nullptr.
inline bool is_plain_tensor(PyObject* object) { return object != nullptr && is_exact_tensor(object); }
// An instance of numpy.generic: immutable, and compared by value.
bool is_numpy_scalar(PyObject* object);
bool is_numpy_scalar_type(PyTypeObject* type);
bool is_numpy_int64(PyObject* object);
// Dictionary access which ignores the methods of subclasses. An OrderedDict has its own order and uses it for lookups.
// `keys_in_order` returns a list. set_item throws PythonError; value nullptr deletes the item.
PyRef keys_in_order(PyObject* dict);
void set_item(PyObject* dict, PyObject* key, PyObject* value);
bool is_module(PyObject* object);  // torch.nn.Module
bool is_warn(PyObject* callable);  // warnings.warn
// The `__module__` of a function or a class; empty when the attribute is missing.
std::string module_of(PyObject* object);
PyRef tuple_of(const std::vector<PyRef>& items);
// The items of a tuple as an instance of this tuple type: a named tuple, torch.Size, a torch.return_types class.
PyRef tuple_as(PyObject* type, PyRef items);

}  // namespace cresset::frontend
