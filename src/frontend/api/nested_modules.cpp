#include "frontend/api/nested_modules.h"

#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <pthread.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "bridge/capture/capture.h"
#include "frontend/api/compiled_function.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/eval/watched_calls.h"
#include "frontend/feedback/thresholds.h"
#include "frontend/trace_rules/transforms.h"
#include "frontend/values/pending_error.h"

namespace cresset::frontend {
namespace {

thread_local CompiledFunction* running = nullptr;  // the function for which this thread runs in CPython
thread_local bool rest_of_capture = false;
vectorcallfunc original_call = nullptr;  // of torch.nn.Module.__call__, once it is replaced

// Number of fallbacks after which an uncalled module is released.
using threshold::kForgottenAfter, threshold::kMostModules;

// The value in the module's own `__dict__`. Borrowed.
PyObject* own_attribute(PyObject* module, PyObject* name) {
  PyObject* const dict = instance_dict(module);
  return dict != nullptr ? PyDict_GetItemWithError(dict, name) : nullptr;
}

// A single torch module contains little more than an operator: its own program would not be faster.
bool is_leaf_of_torch(PyObject* module) {
  static PyObject* const modules = PyUnicode_InternFromString("_modules");
  static PyObject* const name = PyUnicode_InternFromString("__module__");
  PyObject* const children = own_attribute(module, modules);
  if (children != nullptr && PyObject_Size(children) != 0) return false;
  const PyRef made_by = PyRef::steal(PyObject_GetAttr((PyObject*)Py_TYPE(module), name));
  PyErr_Clear();
  return made_by && PyUnicode_Check(made_by.get()) && std::string_view(utf8(made_by.get())).starts_with("torch.nn.");
}

// Set by module.compile() of torch, or by compile_in_place.
bool has_its_own_compiled_form(PyObject* module) {
  static PyObject* const name = PyUnicode_InternFromString("_compiled_call_impl");
  PyObject* const form = own_attribute(module, name);
  return form != nullptr && form != Py_None;
}

bool holds_tensor(PyObject* value) {
  if (is_tensor(value)) return true;
  const auto holds = [](PyObject* const* items, Py_ssize_t count) {
    return std::any_of(items, items + count, [](PyObject* item) { return is_tensor(item); });
  };
  if (PyTuple_Check(value) || PyList_Check(value))
    return holds(PySequence_Fast_ITEMS(value), PySequence_Fast_GET_SIZE(value));
  PyObject *key, *item;
  for (Py_ssize_t position = 0; PyDict_Check(value) && PyDict_Next(value, &position, &key, &item) != 0;)
    if (is_tensor(item)) return true;
  return false;
}

// Whether no other tool wraps, traces or counts tensors on this thread, since such a tool must see each operator.
bool is_plain_run() {
  return (rest_of_capture || bridge::Capture::current() == nullptr) && !inside_transform() &&
         !c10::impl::TorchDispatchModeTLS::any_modes_set() && cresset_eval_is_watched() == 0;
}

PyRef form_of(CompiledFunction& of, PyObject* call, PyObject* const* args, Py_ssize_t given) {
  PyObject* const module = args[0];
  if (of.is_call_of(module, call) || has_its_own_compiled_form(module) || is_leaf_of_torch(module)) return {};
  if (!std::any_of(args + 1, args + given, holds_tensor) || !is_plain_run()) return {};
  return of.inner_modules().compiled(call, module, of.options());
}

// Replacement of torch.nn.Module.__call__(module, ...). Calls the compiled form of the module during a fallback, and
// the original function otherwise.
PyObject* call_module(PyObject* function, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const Py_ssize_t positional = PyVectorcall_NARGS(nargsf);
  if (running == nullptr || positional == 0) return original_call(function, args, nargsf, kwnames);
  const Py_ssize_t named = kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0;
  PyRef form;
  try {
    form = form_of(*running, function, args, positional + named);
  } catch (const PythonError&) {
    PyErr_Clear();
  }
  if (!form) return original_call(function, args, nargsf, kwnames);
  return PyObject_Vectorcall(form.get(), args + 1, static_cast<size_t>(positional - 1), kwnames);
}

// torch.nn.Module.__call__ of this moment, if it is a Python function. Tools that trace modules replace it for a while.
PyRef call_of_modules() {
  // A forked process, such as a data loader worker, must not continue the fallback.
  static const int registered = pthread_atfork(nullptr, nullptr, [] { running = nullptr, rest_of_capture = false; });
  static_cast<void>(registered);
  PyRef function = PyRef::steal(PyObject_GetAttrString(module_attribute("torch.nn", "Module"), "__call__"));
  if (function && PyFunction_Check(function.get())) return function;
  PyErr_Clear();
  return {};
}

int watching = 0;             // fallbacks in progress; under the GIL
PyObject* watched = nullptr;  // the function that they watch; owned

// Installed only while a fallback is in progress, because the hook costs time at each call. Calls of other threads use
// the original function.
void watch_calls_of_modules() {
  if (watching++ != 0) return;
  watched = call_of_modules().release();
  if (watched == nullptr) return;
  if (const vectorcallfunc before = cresset_eval_watch_calls(watched, &call_module)) original_call = before;
  PyErr_Clear();
}
void leave_calls_of_modules() {
  if (--watching != 0 || watched == nullptr) return;
  cresset_eval_unwatch_calls(watched);
  Py_CLEAR(watched);
}

}  // namespace

PyRef InnerModules::compiled(PyObject* call, PyObject* module, const CompileOptions& options) {
  const auto found = known_.find(module);
  const bool is_known = found != known_.end() && PyWeakref_GetObject(found->second.reference.get()) == module;
  if (!is_known) {
    if (known_.size() >= kMostModules) return {};
    Known met;
    met.reference = checked(PyWeakref_NewRef(module, nullptr));
    met.rest = rests_;
    known_.insert_or_assign(module, std::move(met));
    return {};
  }
  Known& known = found->second;
  known.rest = rests_;
  if (known.compiled) return known.compiled;
  const NoNativeRest own_business;
  const PyRef bound = checked(PyMethod_New(call, module)), api = import_module(python_names::kApi);
  PyRef made = checked(new_compiled_function(bound.get(), options));
  checked(PyObject_CallMethod(api.get(), "_register", "O", made.get()));
  known_[module].compiled = made;  // Python code has run and may have changed the table
  return made;
}

void InnerModules::begin_fallback() {
  ++rests_;
  std::vector<Known> forgotten;  // destroyed outside of the table: their destruction may run Python code
  std::erase_if(known_, [&](auto& known) {
    if (known.second.rest + kForgottenAfter >= rests_) return false;
    forgotten.push_back(std::move(known.second));
    return true;
  });
}

void InnerModules::clear() { std::exchange(known_, {}); }

int InnerModules::visit(visitproc visit, void* arg) const {
  for (const auto& [address, known] : known_) {
    Py_VISIT(known.reference.get());
    Py_VISIT(known.compiled.get());
  }
  return 0;
}

NativeRest::NativeRest(CompiledFunction& of, bool of_capture)
    : around_(std::exchange(running, nullptr)), capture_around_(std::exchange(rest_of_capture, false)) {
  if (!of.options().evaluate || of.options().fullgraph) return;
  watch_calls_of_modules();
  of.inner_modules().begin_fallback();
  running = &of;
  rest_of_capture = of_capture;
  watches_ = true;
}
NativeRest::~NativeRest() {
  running = around_, rest_of_capture = capture_around_;
  if (watches_) leave_calls_of_modules();
}

bool NativeRest::in_capture() { return rest_of_capture; }

NoNativeRest::NoNativeRest()
    : around_(std::exchange(running, nullptr)), capture_around_(std::exchange(rest_of_capture, false)) {}
NoNativeRest::~NoNativeRest() { running = around_, rest_of_capture = capture_around_; }

uintptr_t exchange_eager_fallback(uintptr_t other) {
  return (uintptr_t)std::exchange(running, (CompiledFunction*)other);
}

}  // namespace cresset::frontend
