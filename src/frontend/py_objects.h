// What the C API leaves to say about objects: instance dictionaries, their versions, tuples of a given type, tensors.
// torch's own headers for tensors in Python take ten seconds a translation unit: few files include them.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

#include "frontend/py_ref.h"

namespace at {
class Tensor;
}
// torch's own, declared as in <torch/csrc/autograd/python_variable.h>: what asks for them is asked at each instruction.
__attribute__((visibility("default"))) extern PyObject* THPVariableClass;
__attribute__((visibility("default"))) extern PyObject* ParameterClass;

namespace cresset::frontend {

// Borrowed; nullptr when the object has none, or has not made it yet.
PyObject* instance_dict(PyObject* object);
// Changes with the dictionary; 0: it changes without a trace. From CPython 3.12 on its lowest bits say who watches it,
// which is no harm, and its users are warned that 3.14 drops it.
inline uint64_t dict_version(PyObject* dict) {
#if PY_VERSION_HEX >= 0x030E0000
  (void)dict;
  return 0;
#else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#if PY_VERSION_HEX >= 0x030D0000
  // Such a dictionary may share its values with an object, whose attributes are set without telling it.
  if (((PyDictObject*)dict)->ma_values != nullptr) return 0;
#endif
  return ((PyDictObject*)dict)->ma_version_tag;
#pragma GCC diagnostic pop
#endif
}
// The class's own names, borrowed. From CPython 3.12 on builtin classes keep theirs elsewhere than in tp_dict.
inline PyObject* type_dict(PyTypeObject* type) {
#if PY_VERSION_HEX < 0x030C0000
  return type->tp_dict;
#else
  PyObject* const dict = PyType_GetDict(type);
  Py_XDECREF(dict);  // the class keeps it
  return dict;
#endif
}
// Of a generator, coroutine or asynchronous generator, also of a finished one; borrowed.
inline PyObject* generator_code(PyObject* generator) {
#if PY_VERSION_HEX < 0x030C0000
  return (PyObject*)((PyGenObject*)generator)->gi_code;
#else
  PyObject* const code = (PyObject*)PyGen_GetCode((PyGenObject*)generator);
  Py_DECREF(code);  // the generator keeps it
  return code;
#endif
}
// module.name, kept for good: for static variables. Of Python's library its own, whatever a user has put there. Throws
// PythonError when there is none.
[[gnu::cold]] PyObject* module_attribute(const char* module, const char* name);
// Likewise, of a name that torch may not have in all releases: without it, a class that nobody has, which is said once.
[[gnu::cold]] PyObject* private_attribute(const char* module, const char* name);
// Whatever the builtins of the frame that runs: PyImport_ImportModule asks them for `__import__`, and a namedtuple's
// `__new__` has none.
[[gnu::cold]] PyRef import_module(const char* name);
// A type made at run time, by a class statement or by C code.
inline bool is_heap_type(const PyTypeObject* type) { return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0; }
// PyCFunction_Check, whose classes cannot be derived from.
inline bool is_c_function(PyObject* object) {
  return Py_IS_TYPE(object, &PyCFunction_Type) || Py_IS_TYPE(object, &PyCMethod_Type);
}
// By the object's own type: no Python code is asked. A class made at run time is no base of those of C code, and an
// instance of a derived class is no smaller than a tensor.
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
inline MethodWrapper take_apart_wrapper(PyObject* wrapper) {  // one for which is_method_wrapper holds
  const auto* const parts = (const LaidOutAsMethodWrapper*)wrapper;
  return {parts->descriptor, parts->self};
}
inline bool is_exact_tensor(PyObject* object) {  // of no subclass but Parameter
  return (PyObject*)Py_TYPE(object) == THPVariableClass || (PyObject*)Py_TYPE(object) == ParameterClass;
}
const at::Tensor& tensor_of(PyObject* object);  // of one for which is_tensor holds
PyRef python_tensor(const at::Tensor& tensor);  // throws PythonError
bool is_enum_member(PyObject* object);
bool is_equal_by_identity(PyObject* object);  // as a key: it is no other object's equal
// By a function of the program, which may leave out what differs between calls, and have effects.
bool is_hashed_by_program(PyObject* object);
// Symbolic numbers of captures; those of others (lengths of nested tensors) are objects like any.
// Their classes say in Python what is true of them: others are told apart without a call.
inline bool may_be_symbolic(PyObject* object) {
  const PyTypeObject* const type = Py_TYPE(object);
  return is_heap_type(type) && type->tp_as_number != nullptr && type->tp_as_number->nb_bool != nullptr;
}
bool is_symbolic_int(PyObject* object);  // of what may be one; likewise the others
bool is_symbolic_float(PyObject* object);
bool is_symbolic_bool(PyObject* object);
inline bool is_symint(PyObject* object) { return may_be_symbolic(object) && is_symbolic_int(object); }
inline bool is_symfloat(PyObject* object) { return may_be_symbolic(object) && is_symbolic_float(object); }
inline bool is_symbool(PyObject* object) { return may_be_symbolic(object) && is_symbolic_bool(object); }
inline bool is_symbolic_number(PyObject* object) {  // any of the three
  return may_be_symbolic(object) && (is_symbolic_int(object) || is_symbolic_float(object) || is_symbolic_bool(object));
}
// The text of a str, for as long as it lives; `otherwise` of other objects, and of what UTF-8 cannot say.
const char* utf8(PyObject* str, const char* otherwise = "?");
// A torch.Tensor or a Parameter, of no subclass; false for nullptr.
inline bool is_plain_tensor(PyObject* object) { return object != nullptr && is_exact_tensor(object); }
// An instance of numpy.generic: immutable, and compared by value.
bool is_numpy_scalar(PyObject* object);
bool is_numpy_scalar_type(PyTypeObject* type);
bool is_numpy_int64(PyObject* object);
// Of a dictionary, past a subclass's own methods: an OrderedDict has an order of its own, and finds items by it. The
// keys are a list. set_item throws PythonError; value nullptr: the item is deleted.
PyRef keys_in_order(PyObject* dict);
void set_item(PyObject* dict, PyObject* key, PyObject* value);
PyRef tuple_of(const std::vector<PyRef>& items);
// A tuple's items as a tuple of this type: a named tuple, torch.Size, a torch.return_types.
PyRef tuple_as(PyObject* type, PyRef items);

}  // namespace cresset::frontend
