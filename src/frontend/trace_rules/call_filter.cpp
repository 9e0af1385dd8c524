#include "frontend/trace_rules/call_filter.h"

#include <array>

#include "base/address_table.h"
#include "frontend/cpython/items.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/guards/torch_settings.h"

namespace cresset::frontend {
namespace {

using Table = AddressTable<const void*, uint8_t>;

// Functions and definitions of methods, under the GIL.
Table& special_calls() {
  static auto& known = *new Table;
  return known;
}

// Adds a function for the whole process, if it exists in this version.
void add(PyObject* owner, const char* name, uint8_t what) {
  PyRef found = PyRef::steal(PyObject_GetAttrString(owner, name));
  if (!found) return PyErr_Clear();
  special_calls()[found.release()] |= what;
}

bool add_all() {
  const auto note = [](const char* module, const char* name, uint8_t what) {
    special_calls()[module_attribute(module, name)] |= what;
  };
  for (const char* name : {"repr", "format", "ascii", "bin", "hex", "oct", "len", "round", "next", "iter", "id", "hash",
                           "globals", "locals", "dir", "vars", "eval", "exec"})
    note("builtins", name, kAnyCall);
  for (const char* name : {"getattr", "hasattr", "setattr", "delattr"}) note("builtins", name, kNamesAttribute);
  note("builtins", "isinstance", kAsksType);
  for (const char* name : {"_getframe", "_getframemodulename"}) add(import_module("sys").get(), name, kAnyCall);
  note("warnings", "warn", kAnyCall);
  special_calls()[private_attribute("torch._C._dynamo.eval_frame", "set_eval_frame")] |= kAnyCall;
  for (const char* name : {"is_contiguous", "stride", "item"})
    add(module_attribute("torch._C", "TensorBase"), name, kAnyCall);
  add(module_attribute("torch", "Size"), "numel", kAnyCall);
  add((PyObject*)&PyType_Type, "__call__", kAnyCall);
  each_setting([](PyObject* function) { special_calls()[function] |= kAnyCall; });
  return true;
}

// Types of numbers and strings, whose methods return NotImplemented or raise for symbolic operands.
bool is_of_values(const PyTypeObject* type) {
  static const std::array<const PyTypeObject*, 6> types{&PyLong_Type,    &PyFloat_Type,   &PyBool_Type,
                                                        &PyComplex_Type, &PyUnicode_Type, &PyBytes_Type};
  return is_among(types, type);
}

uint8_t noted(const void* original) {
  const uint8_t* const known = special_calls().find(original);
  return known != nullptr ? *known : kOrdinaryCall;
}

}  // namespace

void note_special_call(const void* original) { special_calls()[original] = kAnyCall; }

uint8_t special_call(PyObject* callable) {
  static const bool added = add_all();
  (void)added;
  if (const uint8_t known = noted(callable); known != kOrdinaryCall) return known;
  if (Py_IS_TYPE(callable, &PyCFunction_Type)) {
    static PyObject* const math = import_module("math").release();
    PyObject* const self = PyCFunction_GET_SELF(callable);
    if (self != nullptr && (self == math || !(PyModule_Check(self) || PyType_Check(self) || is_tensor(self))))
      return kAnyCall;
    return noted(((PyCFunctionObject*)callable)->m_ml);
  }
  if (Py_IS_TYPE(callable, &PyMethodDescr_Type))
    return is_of_values(PyDescr_TYPE(callable)) ? uint8_t{kAnyCall} : noted(((PyMethodDescrObject*)callable)->d_method);
  // Slots of non-value objects, such as object().__getattribute__, which symbolic_strings.h handles.
  if (!is_method_wrapper(callable)) return kAnyCall;
  const MethodWrapper parts = decompose_wrapper(callable);
  const bool of_value = is_of_values(PyDescr_TYPE(parts.descriptor)) || PyLong_Check(parts.self) ||
                        PyFloat_Check(parts.self) || PyUnicode_Check(parts.self);
  return of_value ? uint8_t{kAnyCall} : noted(parts.descriptor);
}

}  // namespace cresset::frontend
