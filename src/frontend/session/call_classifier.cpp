#include "frontend/session/call_classifier.h"

#include <string_view>

#include "frontend/cpython/items.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/trace_rules/transforms.h"

namespace cresset::frontend {

// The identity of a query function; nullptr for a call with arguments. Function objects come and go, but definitions
// persist.
static const void* definition_of_question(const CressetCall& call) {
  if (call.nargs != 0 || call.kwnames != nullptr || call.evaluated) return nullptr;
  if (call.callable == (PyObject*)&PySuper_Type) return &PySuper_Type;
  return PyCFunction_CheckExact(call.callable) ? ((PyCFunctionObject*)call.callable)->m_ml : nullptr;
}

// Whether the function belongs to a module and not to an object. pybind11's functions hold their own record.
static bool is_function_of_module(PyObject* callable) {
  PyObject* const self = PyCFunction_GET_SELF(callable);
  return self == nullptr || PyModule_Check(self) || PyCapsule_CheckExact(self) ||
         std::string_view(Py_TYPE(self)->tp_name).starts_with("pybind11_");
}

// has_torch_function() and its variants read the types of their arguments and the active modes. The answer is constant
// for plain tensors and values.
static bool asks_for_overrides(const CressetCall& call) {
  static const struct {
    PyObject* of_any = private_attribute("torch._C", "_has_torch_function");
    PyObject* of_one = private_attribute("torch._C", "_has_torch_function_unary");
    PyObject* of_several = private_attribute("torch._C", "_has_torch_function_variadic");
  } asks;
  if ((call.callable != asks.of_one && call.callable != asks.of_several && call.callable != asks.of_any) ||
      call.kwnames != nullptr)
    return false;
  const auto is_plain = [](PyObject* o) {
    return is_plain_tensor(o) || o == Py_None || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o);
  };
  if (call.callable != asks.of_any) return all_among(call.args, call.args + call.nargs, is_plain);
  if (call.nargs != 1 || !PyTuple_CheckExact(call.args[0])) return false;
  PyObject** const items = PySequence_Fast_ITEMS(call.args[0]);
  return all_among(items, items + PyTuple_GET_SIZE(call.args[0]), is_plain);
}

bool CallClassifier::is_plain_question(const CressetCall& call) const {
  if (subgraphs_.is_inside()) return false;
  if (call.nargs != 0) return !call.evaluated && PyCFunction_CheckExact(call.callable) && asks_for_overrides(call);
  const void* const definition = definition_of_question(call);
  return definition != nullptr && plain_questions_.count(definition) != 0;
}

// Records a function without arguments that reads no mutable state and returns no object to inspect. Later calls of it
// need no checks.
void CallClassifier::note_question(const CressetCall& call, const PyObject* result) {
  const void* const definition = definition_of_question(call);
  if (definition == nullptr || result == nullptr || subgraphs_.is_inside()) return;
  const bool plain = result == Py_None || PyBool_Check(result) || PyLong_CheckExact(result);
  if (!plain && !Py_IS_TYPE(result, &PySuper_Type)) return;
  const bool is_super = definition == &PySuper_Type;
  if (!is_super && !is_function_of_module(call.callable)) return;
  const CCall what = classify(call);
  if (what.self != nullptr || what.by_arguments || changes_level(what.name) != 0) return;
  if (is_super || what.effect == CEffect::Pure) {
    plain_questions_.insert(definition);
    provenance_.keep(PyRef::borrow(call.callable));
  }
}

// The table's answer depends only on the function and the type of its self, so it is cached per pair.
CCall CallClassifier::classify(const CressetCall& call) {
  PyObject *callable = call.callable, *self = nullptr;
  const void* function = nullptr;
  if (PyCFunction_CheckExact(callable)) {
    self = PyCFunction_GET_SELF(callable);
    function = ((PyCFunctionObject*)callable)->m_ml;
    if (self != nullptr && PyModule_Check(self)) self = nullptr;
  } else if ((Py_TYPE(callable) == &PyMethodDescr_Type || Py_TYPE(callable) == &PyWrapperDescr_Type) &&
             call.nargs > 0) {
    self = call.args[0];
    function = callable;
  } else if (is_method_wrapper(callable)) {
    self = decompose_wrapper(callable).self;
    function = (const char*)decompose_wrapper(callable).descriptor + 1;  // no self among its arguments
  } else if (PyType_Check(callable)) {
    function = callable;
  }
  const bool of_class = self != nullptr && PyType_Check(self);  // torch's functions are static methods of a class
  if (function == nullptr || (of_class && !PyCFunction_CheckExact(callable)))
    return classify_call(callable, call.args, call.nargs);
  const AddressPair key =
      of_class ? AddressPair{self, function} : AddressPair{function, self != nullptr ? Py_TYPE(self) : nullptr};
  const CCall* known = classified_.find(key);
  if (known == nullptr) {
    const CCall what = classify_call(callable, call.args, call.nargs);
    known = &(classified_[key] = what);
    // A bound method would keep its self alive.
    if (is_method_wrapper(callable))
      provenance_.keep(PyRef::borrow(decompose_wrapper(callable).descriptor));
    else if (!PyCFunction_CheckExact(callable) || self == nullptr || of_class)
      provenance_.keep(PyRef::borrow(callable));
    if (self != nullptr) provenance_.keep(PyRef::borrow((PyObject*)Py_TYPE(self)));
  }
  if (known->by_arguments) return classify_call(callable, call.args, call.nargs);
  CCall out = *known;
  if (out.self != nullptr) out.self = self;
  return out;
}

}  // namespace cresset::frontend
