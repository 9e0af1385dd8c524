#include "frontend/trace_rules/substitutes.h"

#include <string_view>
#include <vector>

#include "base/address_table.h"
#include "frontend/cpython/code_origin.h"
#include "frontend/cpython/items.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/trace_rules/c_function_effects.h"
#include "frontend/trace_rules/call_filter.h"
#include "frontend/trace_rules/call_modes.h"
#include "frontend/trace_rules/polyfills.h"
#include "frontend/values/number_classes.h"
#include "frontend/values/pending_error.h"

namespace cresset::frontend {

thread_local int CompilingFlag::depth_ = 0;

namespace {

// Under the GIL; all references are kept for the whole process.
AddressTable<const void*, PyObject*>& substitutes() {
  static auto& known = *new AddressTable<const void*, PyObject*>;
  return known;
}
// Keyed by the function of a bound method, or the definition of a C method, and its self.
AddressTable<AddressPair, PyObject*>& bound_substitutes() {
  static auto& known = *new AddressTable<AddressPair, PyObject*>;
  return known;
}
// Descriptors of tensor methods, keyed by the definition that bound methods share with them.
AddressTable<const void*, PyObject*>& methods_of_tensors() {
  static auto& known = *new AddressTable<const void*, PyObject*>;
  return known;
}

PyObject *asks = nullptr, *uncounted = nullptr;

// Whether the frame runs the substitute itself.
bool is_in(const CressetActivation& activation, PyObject* function) {
  return PyFunction_Check(function) && (PyObject*)activation.code == PyFunction_GET_CODE(function);
}

PyObject* found_for(const CressetActivation& activation, const void* original) {
  PyObject* const* const found = substitutes().find(original);
  if (found == nullptr || is_in(activation, *found)) return nullptr;
  return is_decomposition_of((PyObject*)original, activation.code) ? nullptr : *found;
}

PyObject* const* bound_to(const void* function, PyObject* self) { return bound_substitutes().find({function, self}); }

PyRef unless_within(const CressetActivation& activation, PyObject* substitute) {
  return is_in(activation, substitute) ? PyRef() : PyRef::borrow(substitute);
}

PyRef for_method(const CressetActivation& activation, PyObject* method) {
  PyObject *const function = PyMethod_GET_FUNCTION(method), *const self = PyMethod_GET_SELF(method);
  if (PyObject* const* const bound = bound_to(function, self)) return unless_within(activation, *bound);
  PyObject* const found = found_for(activation, function);
  return found != nullptr ? checked(PyMethod_New(found, self)) : PyRef();
}

PyRef for_c_method(const CressetActivation& activation, PyObject* method) {
  PyObject* const self = PyCFunction_GET_SELF(method);
  if (self == nullptr) return {};
  if (PyType_Check(self)) {
    PyObject* const* const bound = bound_to(definition_of(method), self);
    return bound != nullptr ? unless_within(activation, *bound) : PyRef();
  }
  if (!is_tensor(self)) return {};
  PyObject* const* const descriptor = methods_of_tensors().find(definition_of(method));
  if (descriptor == nullptr) return {};
  // An override in a subclass must not be bypassed.
  if (_PyType_Lookup(Py_TYPE(self), PyDescr_NAME(*descriptor)) != *descriptor) return {};
  PyObject* const found = found_for(activation, *descriptor);
  return found != nullptr ? checked(PyMethod_New(found, self)) : PyRef();
}

// For a class whose __init__ has a substitute: a function which creates the instance by an evaluated call of __init__.
PyRef for_class(PyTypeObject* type) {
  static PyObject* const name = PyUnicode_InternFromString("__init__");
  static PyObject* const make = module_attribute(python_names::kPolyfills, "make_instance");
  PyObject* const init = _PyType_Lookup(type, name);
  if (init == nullptr || !PyFunction_Check(init) || !has_substitute(init)) return {};
  return checked(PyMethod_New(make, (PyObject*)type));
}

template <class F>
int reported(F&& f) {
  try {
    return f(), 0;
  } catch (const PythonError&) {
    return -1;
  }
}

int after_traced_read(void*, CressetActivation*, const CressetAttributeRead* read) {
  return reported([&] { adopt(read->value); });
}

int after_traced_call(void*, CressetActivation*, const CressetCall*, PyObject** result, PyObject*) {
  return reported([&] { adopt(*result); });
}

CressetAction before_traced_operator(void*, CressetActivation*, const CressetOperator* op, PyObject**) {
  return reported([&] { adopt_operands(*op); }) < 0 ? CRESSET_FAIL : CRESSET_RUN;
}

CressetAction before_traced_call(void*, CressetActivation* activation, const CressetCall* call, PyObject** result) {
  try {
    adopt_arguments(*call);
    if (PyObject* const answer = answer_to_compiling(*activation, *call))
      return *result = Py_NewRef(answer), CRESSET_RESULT;
    PyRef instead = substitute_of(*activation, *call);
    if (!instead) return CRESSET_RUN;
    // The evaluator drops the callable after the call and does not own its replacement.
    static thread_local PyRef kept;
    kept = std::move(instead);
    return *result = kept.get(), CRESSET_INSTEAD;
  } catch (const PythonError&) {
    return CRESSET_FAIL;
  }
}

}  // namespace

std::vector<Bookkeeping>& bookkeeping_names() {
  static auto& known = *new std::vector<Bookkeeping>;
  return known;
}

PyRef substitute_of(const CressetActivation& activation, const CressetCall& call) {
  PyObject* const callable = call.callable;
  if (PyFunction_Check(callable)) meet_function(callable);
  if (PyObject* const found = found_for(activation, callable)) return PyRef::borrow(found);
  if (PyMethod_Check(callable)) return for_method(activation, callable);
  if (is_c_function(callable)) return for_c_method(activation, callable);
  if (call.evaluated && PyType_Check(callable)) return for_class((PyTypeObject*)callable);
  return {};
}

bool has_substitute(PyObject* original) { return substitutes().contains(original); }

// Returns false to parts of torch that change their behavior under compilation. Module._call_impl would skip
// always_call hooks, and optimizers would compute numbers in single precision. Collectives and model synchronization
// would raise, or omit work which another compiler adds.
PyObject* answer_to_compiling(const CressetActivation& activation, const CressetCall& call) {
  if (call.callable != asks || asks == nullptr || call.nargs != 0 || !CompilingFlag::is_set()) return nullptr;
  static PyObject* const code = [] {
    const PyRef method = PyRef::steal(PyObject_GetAttrString(module_attribute("torch.nn", "Module"), "_call_impl"));
    if (!method) PyErr_Clear();
    return Py_NewRef(method && PyFunction_Check(method.get()) ? PyFunction_GET_CODE(method.get()) : Py_None);
  }();
  const std::string_view file = path_in_torch(activation.code->co_filename);
  const bool other = (PyObject*)activation.code == code || file.starts_with("optim") ||
                     file.starts_with("distributed") || file.starts_with("nn/parallel");
  return other ? Py_False : Py_True;
}

PyRef next_of_uncounted(const CressetCall& call) {
  static PyObject* const next = module_attribute("builtins", "next");
  if (call.callable != next || call.nargs != 1 || call.kwnames != nullptr || call.args[0] != uncounted) return {};
  return checked(PyObject_CallOneArg(next, uncounted));
}

SubstitutedCalls::SubstitutedCalls() {
  if (cresset_eval_unsupported() != nullptr) return;
  hooks_.before_call = &before_traced_call;
  hooks_.after_call = &after_traced_call;
  hooks_.read_attribute = &after_traced_read;
  hooks_.before_operator = &before_traced_operator;
  begun_ = cresset_eval_begin(&hooks_) == 0;
  if (!begun_) PyErr_Clear();
}
SubstitutedCalls::~SubstitutedCalls() {
  if (begun_) cresset_eval_end();
}

PyObject* substitute(PyObject*, PyObject* args) {
  PyObject *original, *function, *self = nullptr;
  if (!PyArg_ParseTuple(args, "OO|O", &original, &function, &self)) return nullptr;
  if (!PyCallable_Check(function)) return PyErr_SetString(PyExc_TypeError, "a callable is wanted"), nullptr;
  Py_INCREF(original), Py_INCREF(function), Py_XINCREF(self);  // kept for the whole process
  if (self != nullptr) {
    const void* const key = definition_of(original);
    if (key != original) note_special_call(key);
    return bound_substitutes()[{key, self}] = function, Py_NewRef(Py_None);
  }
  substitutes()[original] = function;
  note_special_call(original);
  if (Py_IS_TYPE(original, &PyMethodDescr_Type)) {
    const PyMethodDef* const method = ((PyMethodDescrObject*)original)->d_method;
    methods_of_tensors()[method] = original;
    note_special_call(method);
  }
  return Py_NewRef(Py_None);
}

PyObject* asks_compiling(PyObject*, PyObject* function) {
  Py_XSETREF(asks, Py_NewRef(function));
  return Py_NewRef(Py_None);
}

PyObject* exchange_compiling(PyObject*, PyObject* depth) {
  const long other = PyLong_AsLong(depth);
  return PyErr_Occurred() != nullptr ? nullptr : PyLong_FromLong(CompilingFlag::exchange(static_cast<int>(other)));
}

PyObject* bookkeeping(PyObject*, PyObject* args) {
  PyObject* owner;
  const char* name;
  int is_counter;
  if (!PyArg_ParseTuple(args, "Osp", &owner, &name, &is_counter)) return nullptr;
  PyObject* const value = PyObject_GetAttrString(owner, name);
  if (value == nullptr) return nullptr;
  if (is_counter != 0) Py_XSETREF(uncounted, Py_NewRef(value));
  Py_DECREF(value);
  PyObject* const of = PyModule_Check(owner) ? PyModule_GetDict(owner) : owner;
  const PyRef text = PyRef::steal(PyUnicode_InternFromString(name));
  if (!text) return nullptr;
  bookkeeping_names().push_back({Py_NewRef(of), PyUnicode_AsUTF8(Py_NewRef(text.get()))});
  return Py_NewRef(Py_None);
}

}  // namespace cresset::frontend
