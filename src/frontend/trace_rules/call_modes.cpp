#include "frontend/trace_rules/call_modes.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/address_table.h"
#include "frontend/cpython/code_origin.h"
#include "frontend/cpython/not_evaluated.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/trace_rules/c_function_effects.h"

namespace cresset::frontend {

namespace {

// Functions declared pure, by identity. They are kept alive because their addresses are keys.
std::unordered_set<PyObject*>& allowed() {
  static std::unordered_set<PyObject*> functions;  // under the GIL
  return functions;
}

PyObject* awaited = nullptr;              // a dictionary: module name -> function that marks; under the GIL
std::array<PyObject*, 16> not_awaited{};  // a cache of module names without an entry; owned

// The function which a call finally runs: of a method, or the Python `__call__` of an instance. Borrowed.
PyObject* function_of(PyObject* callable) {
  static PyObject* const call = PyUnicode_InternFromString("__call__");
  if (PyMethod_Check(callable)) callable = PyMethod_GET_FUNCTION(callable);
  if (PyFunction_Check(callable) || PyType_Check(callable)) return callable;
  PyObject* found = _PyType_Lookup(Py_TYPE(callable), call);
  return found != nullptr ? found : callable;
}

// The mode of a function. Marks are stored here and not on the function, which may belong to torch or to the user.
struct Mark {
  PyRef function;                                   // weak
  PyRef code;                                       // a function with other code counts as another function
  PyRef why;                                        // None: run in CPython; a str: the reason for disabling
  BreakKind kind = BreakKind::UntraceableFunction;  // of the reason
  bool outside_torch = false;                       // torch's own calls of the function are no request of the user
};

// Under the GIL. The key is the function's address, which may be reused.
std::unordered_map<PyObject*, Mark>& marks() {
  static auto& known = *new std::unordered_map<PyObject*, Mark>;
  return known;
}

void forget_marks_of_gone() {
  static size_t most = 1024;
  if (marks().size() < most) return;
  std::vector<Mark> gone;  // destroyed outside of the table: their destruction may run Python code
  std::erase_if(marks(), [&](auto& known) {
    const bool is_gone = PyWeakref_GetObject(known.second.function.get()) == Py_None;
    if (is_gone) gone.push_back(std::move(known.second));
    return is_gone;
  });
  most = std::max<size_t>(1024, 2 * marks().size());
}

// nullptr without a mark.
const Mark* own_mark(PyObject* function) {
  const auto found = marks().find(function);
  if (found == marks().end()) return nullptr;
  const Mark& mark = found->second;
  if (PyWeakref_GetObject(mark.function.get()) != function) return nullptr;
  return mark.code.get() == PyFunction_GET_CODE(function) ? &mark : nullptr;
}

// A mark of torch's, in the function's __dict__.
bool is_marked_by_torch(PyObject* function, PyObject* name) {
  PyObject* const attributes = PyFunction_Check(function) ? ((PyFunctionObject*)function)->func_dict : nullptr;
  return attributes != nullptr && PyDict_GetItemWithError(attributes, name) == Py_True;
}

bool is_disabled_by_torch(PyObject* function) {
  static PyObject* const name = PyUnicode_InternFromString("_torchdynamo_disable");
  return is_marked_by_torch(function, name);
}

// torch disables these optimizer methods when its own compiler is first used; cresset ignores this mark.
bool is_method_of_optimizers(PyObject* function) {
  PyObject* const module = PyFunction_Check(function) ? ((PyFunctionObject*)function)->func_module : nullptr;
  return module != nullptr && PyUnicode_Check(module) && std::string_view(utf8(module)).starts_with("torch.optim.");
}

}  // namespace

void meet_function(PyObject* function) {
  PyObject* const module = ((PyFunctionObject*)function)->func_module;
  if (awaited == nullptr || module == nullptr || !PyUnicode_CheckExact(module)) return;
  PyObject*& known = not_awaited[address_hash(module) >> 60];
  if (known == module) return;
  PyObject* const found = PyDict_GetItemWithError(awaited, module);
  if (found == nullptr) {
    Py_XSETREF(known, Py_NewRef(module));
    return;
  }
  const PyRef marks = PyRef::borrow(found);
  if (PyDict_DelItem(awaited, module) < 0) throw PythonError();
  const NotEvaluated own_business;
  checked(PyObject_CallNoArgs(marks.get()));
}

CallMode call_mode(PyObject* callable, PyCodeObject* caller) {
  PyObject* function = function_of(callable);
  if (PyFunction_Check(function)) meet_function(function);
  const Mark* const mark = own_mark(function);
  if (mark != nullptr && mark->outside_torch && !path_in_torch(caller->co_filename).empty()) return CallMode::Evaluated;
  if (mark != nullptr) return mark->why.get() == Py_None ? CallMode::Native : CallMode::Disabled;
  const bool marked = is_assumed_constant(function) || is_disabled_by_torch(function);
  return marked && !is_method_of_optimizers(function) ? CallMode::Disabled : CallMode::Evaluated;
}

BreakReason why_disabled(PyObject* callable) {
  const Mark* const mark = own_mark(function_of(callable));
  const char* const utf8 =
      mark != nullptr && PyUnicode_Check(mark->why.get()) ? PyUnicode_AsUTF8(mark->why.get()) : nullptr;
  if (utf8 != nullptr) return {mark->kind, utf8};
  if (is_assumed_constant(callable))
    return {BreakKind::DataDependentValue,
            "a call of " + describe_callable(callable) + " on tensors, whose result is assumed to be constant"};
  return {BreakKind::UserRequest, "a call of " + describe_callable(callable) + ", which is kept from being compiled"};
}

bool is_assumed_constant(PyObject* callable) {
  static PyObject* const name = PyUnicode_InternFromString("_dynamo_marked_constant");
  return is_marked_by_torch(function_of(callable), name);
}

bool is_forbidden(PyObject* callable) {
  static PyObject* const name = PyUnicode_InternFromString("_dynamo_forbidden");
  return is_marked_by_torch(function_of(callable), name);
}

bool is_allowed(PyObject* callable) { return allowed().count(callable) != 0; }

void mark_function(PyObject* function, PyObject* why, const char* kind, bool outside_torch) {
  Mark made{checked(PyWeakref_NewRef(function, nullptr)), PyRef::borrow(PyFunction_GET_CODE(function)),
            PyRef::borrow(why)};
  made.outside_torch = outside_torch;
  if (kind != nullptr) made.kind = kind_named(kind).value_or(made.kind);
  forget_marks_of_gone();
  const Mark before = std::exchange(marks()[function], std::move(made));
}

PyObject* mark_of(PyObject*, PyObject* function) {
  const Mark* const mark = own_mark(function);
  return mark != nullptr ? PyTuple_Pack(1, mark->why.get()) : Py_NewRef(Py_None);
}

PyObject* mark_when_met(PyObject*, PyObject* args) {
  PyObject *module, *marks;
  if (PyArg_ParseTuple(args, "UO", &module, &marks) == 0) return nullptr;
  if (awaited == nullptr) awaited = PyDict_New();
  for (PyObject*& name : not_awaited) Py_CLEAR(name);
  return awaited == nullptr || PyDict_SetItem(awaited, module, marks) < 0 ? nullptr : Py_NewRef(Py_None);
}

PyObject* allow(PyObject*, PyObject* callable) {
  if (allowed().insert(callable).second) Py_INCREF(callable);
  return Py_NewRef(Py_None);
}

}  // namespace cresset::frontend
