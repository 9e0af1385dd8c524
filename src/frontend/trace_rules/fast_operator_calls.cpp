#include "frontend/trace_rules/fast_operator_calls.h"

#include "base/address_table.h"
#include "frontend/cpython/items.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/trace_rules/call_modes.h"
#include "frontend/values/number_classes.h"

namespace cresset::frontend {
namespace {

// Answers of the table by function or descriptor, which are kept for the whole process. Under the GIL.
AddressTable<PyObject*, CCall>& operators() {
  static auto& known = *new AddressTable<PyObject*, CCall>;
  return known;
}

bool takes_plain_values(const CressetCall& call) {
  static PyTypeObject* const symbol = symint_class();
  const auto is_plain = [](PyObject* o) {
    return is_plain_tensor(o) || PyLong_CheckExact(o) || o == Py_None || PyBool_Check(o) || PyFloat_CheckExact(o) ||
           PyUnicode_CheckExact(o) || Py_TYPE(o) == symbol;
  };
  return all_among(call.args, call.args + cresset_count_arguments(&call), [&](PyObject* o) {
    if (!PyTuple_CheckExact(o)) return is_plain(o);
    PyObject** const items = PySequence_Fast_ITEMS(o);
    return all_among(items, items + PyTuple_GET_SIZE(o), is_plain);
  });
}

// Functions whose names begin with an underscore are excluded: they change modes or are special methods.
CCall asked(const CressetCall& call) {
  CCall what = classify_call(call.callable, call.args, call.nargs);
  const bool named = what.name[0] != '\0' && what.name[0] != '_';
  if (what.by_arguments || !named || is_allowed(call.callable)) what.effect = CEffect::Untraceable;
  return what;
}

bool is_method_of_tensor(const CressetCall& call) {
  return Py_IS_TYPE(call.callable, &PyMethodDescr_Type) && call.nargs != 0 && is_plain_tensor(call.args[0]);
}

// Whether the callable is a static method or a module function. Functions of pybind11 are created at run time and have
// a self.
bool is_plain_function(PyObject* callable) {
  if (!PyCFunction_CheckExact(callable)) return false;
  PyObject* const self = PyCFunction_GET_SELF(callable);
  return self == nullptr || PyModule_CheckExact(self);
}

}  // namespace

bool is_plain_operator(const CressetCall& call, CCall* what) {
  const bool is_method = is_method_of_tensor(call);
  if (!is_method && !is_plain_function(call.callable)) return false;
  const auto [known, fresh] = operators().add(call.callable);
  if (fresh) *known = asked(call), Py_INCREF(call.callable);
  if (known->effect != CEffect::Pure || !takes_plain_values(call)) return false;
  *what = *known;
  what->self = is_method ? call.args[0] : nullptr;
  return true;
}

bool was_plain_operator(const CressetCall& call) {
  if (!PyCFunction_CheckExact(call.callable) && !is_method_of_tensor(call)) return false;
  const CCall* const known = operators().find(call.callable);
  return known != nullptr && known->effect == CEffect::Pure;
}

}  // namespace cresset::frontend
