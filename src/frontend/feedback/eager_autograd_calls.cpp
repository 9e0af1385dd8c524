#include "frontend/feedback/eager_autograd_calls.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/python_cpp_function.h>
#include <torch/csrc/autograd/python_hook.h>

#include <algorithm>
#include <unordered_map>

#include "frontend/cpython/py_objects.h"
#include "frontend/feedback/feedback.h"
#include "frontend/feedback/thresholds.h"
#include "frontend/values/pending_error.h"

namespace cresset::frontend {
namespace {

void add(PyObject* code) {
  Feedback* const known = Feedback::current();
  if (known != nullptr && known->of_autograd.size() < threshold::kMostPlaces)
    known->of_autograd.try_emplace(code, PyRef::borrow(code), Nothing{});
}

bool any_is_left() {
  const Feedback* const known = Feedback::current();
  return known != nullptr && !known->of_autograd.empty();
}

bool is_left_code(PyObject* code) { return any_is_left() && Feedback::current()->of_autograd.count(code) != 0; }

// Code which uses autograd on tensors that outlive the segment, and code which was queried. nullptr: no compiled
// function is running.
Feedback::Users* users(UseOfAutograd use) {
  Feedback* const known = Feedback::current();
  return known != nullptr ? &known->users.at(static_cast<size_t>(use)) : nullptr;
}

PyObject* wrapped_by(PyObject* function) {
  static PyObject* const name = PyUnicode_InternFromString("__wrapped__");
  PyObject* const dict = ((PyFunctionObject*)function)->func_dict;
  return dict != nullptr ? PyDict_GetItemWithError(dict, name) : nullptr;
}

bool is_left(PyObject* callable, int depth = 0);

bool any_left(PyObject* owner, const char* list) {
  const PyRef hooks = PyRef::steal(PyObject_GetAttrString(owner, list));
  if (!hooks) PyErr_Clear();
  if (!hooks || !PyList_Check(hooks.get())) return false;
  PyObject** items = PySequence_Fast_ITEMS(hooks.get());
  return std::any_of(items, items + PyList_GET_SIZE(hooks.get()), [](PyObject* hook) { return is_left(hook); });
}

bool is_left(PyObject* callable, int depth) {
  if (callable == nullptr || depth > 8) return false;
  if (PyMethod_Check(callable)) return is_left(PyMethod_GET_FUNCTION(callable), depth + 1);
  if (PyFunction_Check(callable)) {
    PyObject* const inner = wrapped_by(callable);
    // once_differentiable wraps many functions in the same code
    auto* const code = (PyCodeObject*)PyFunction_GET_CODE(callable);
    const bool is_shared =
        inner != nullptr && std::string_view(utf8(code->co_filename)).ends_with("autograd/function.py");
    return (!is_shared && is_left_code((PyObject*)code)) || is_left(inner, depth + 1);
  }
  static PyObject* const partial = module_attribute("functools", "partial");
  if (PyObject_TypeCheck(callable, (PyTypeObject*)partial)) {
    const PyRef inner = PyRef::steal(PyObject_GetAttrString(callable, "func"));
    if (!inner) PyErr_Clear();
    return is_left(inner.get(), depth + 1);
  }
  static PyObject* const names[] = {PyUnicode_InternFromString("__call__"), PyUnicode_InternFromString("forward")};
  return std::any_of(std::begin(names), std::end(names), [&](PyObject* name) {
    PyObject* const method = _PyType_Lookup(Py_TYPE(callable), name);
    return method != nullptr && PyFunction_Check(method) && is_left(method, depth + 1);
  });
}

PyTypeObject* type_of_module_hooks() {
  static auto* const type = (PyTypeObject*)private_attribute("torch.utils.hooks", "BackwardHook");
  return type;
}

// Whether the callable is a C function, which the evaluator cannot observe.
bool is_of_c(PyObject* callable) {
  static PyObject* const partial = module_attribute("functools", "partial");
  if (PyMethod_Check(callable)) return is_of_c(PyMethod_GET_FUNCTION(callable));
  if (PyObject_TypeCheck(callable, (PyTypeObject*)partial)) {
    const PyRef inner = PyRef::steal(PyObject_GetAttrString(callable, "func"));
    if (!inner) PyErr_Clear();
    return !inner || is_of_c(inner.get());
  }
  if (PyFunction_Check(callable)) return false;
  static PyObject* const name = PyUnicode_InternFromString("__call__");
  PyObject* const method = _PyType_Lookup(Py_TYPE(callable), name);
  return method == nullptr || !PyFunction_Check(method);
}

bool wants_gradients(PyObject* object) {
  if (is_tensor(object)) return tensor_of(object).defined() && tensor_of(object).requires_grad();
  if (!PyTuple_Check(object) && !PyList_Check(object)) return false;
  PyObject** items = PySequence_Fast_ITEMS(object);
  return std::any_of(items, items + PySequence_Fast_GET_SIZE(object), [](PyObject* item) {
    return is_tensor(item) && tensor_of(item).defined() && tensor_of(item).requires_grad();
  });
}

// The functions that add Python functions to the autograd graph.
enum class Way : uint8_t { None, HookOfTensor, CustomFunction, HooksOfModule, Checkpoint };
// A callable as its function, or the definition of a C method, and its self or nullptr.
struct Parts {
  const void* function;
  PyObject* self;
};
Parts parts_of(PyObject* callee) {
  if (PyMethod_Check(callee)) return {PyMethod_GET_FUNCTION(callee), PyMethod_GET_SELF(callee)};
  return {definition_of(callee), is_c_function(callee) ? PyCFunction_GET_SELF(callee) : nullptr};
}
Way way_of(const void* function) {
  static const std::unordered_map<const void*, Way> ways = [] {
    std::unordered_map<const void*, Way> out;
    const auto add = [&](const PyRef& of, const char* name, Way way) {
      const PyRef found = PyRef::steal(PyObject_GetAttrString(of.get(), name));
      if (!found) return PyErr_Clear();  // missing in this release
      if (is_c_function(found.get())) return (void)out.emplace(parts_of(found.get()).function, way);
      PyObject* inner = PyMethod_Check(found.get()) ? PyMethod_GET_FUNCTION(found.get()) : found.get();
      if (PyObject* wrapped = cresset_eval_wrapped(inner)) inner = wrapped;
      out.emplace(Py_NewRef(inner), way);
    };
    add(PyRef::borrow(module_attribute("torch", "Tensor")), "register_hook", Way::HookOfTensor);
    add(PyRef::borrow(module_attribute("torch.autograd", "Function")), "apply", Way::CustomFunction);
    add(PyRef::borrow((PyObject*)type_of_module_hooks()), "setup_input_hook", Way::HooksOfModule);
    add(PyRef::borrow((PyObject*)type_of_module_hooks()), "setup_output_hook", Way::HooksOfModule);
    for (const char* name : {"checkpoint", "_checkpoint_impl"})  // the latter behind decorators, since torch 2.14
      add(import_module("torch.utils.checkpoint"), name, Way::Checkpoint);
    return out;
  }();
  const auto found = ways.find(function);
  return found != ways.end() ? found->second : Way::None;
}

bool brings_by(Way way, const std::vector<PyObject*>& args) {
  const bool wanted = std::any_of(args.begin() + 1, args.end(), wants_gradients);
  switch (way) {
    case Way::None:
      return false;
    case Way::HookOfTensor:
      return is_left(args[1]) || is_of_c(args[1]);
    case Way::HooksOfModule:
      return wanted && (any_left(args[0], "user_hooks") || any_left(args[0], "user_pre_hooks"));
    case Way::Checkpoint:
      return is_left(args[0]);
    case Way::CustomFunction: {
      const PyRef backward = PyRef::steal(PyObject_GetAttrString(args[0], "backward"));
      if (!backward) PyErr_Clear();
      return wanted && is_left(backward.get());
    }
  }
  return false;
}

void add_code(PyObject* callable) {
  if (PyMethod_Check(callable)) callable = PyMethod_GET_FUNCTION(callable);
  if (!PyFunction_Check(callable)) {
    static PyObject* const forward = PyUnicode_InternFromString("forward");
    callable = _PyType_Lookup(Py_TYPE(callable), forward);
  }
  if (callable != nullptr && PyFunction_Check(callable) && wrapped_by(callable) != nullptr)
    add_code(wrapped_by(callable));
  if (callable != nullptr && PyFunction_Check(callable)) add(PyFunction_GET_CODE(callable));
}

const CressetActivation* checkpoint_around(const CressetActivation* innermost) {
  for (const CressetActivation* a = innermost; a != nullptr; a = a->caller)
    if (a->function != nullptr && way_of(a->function) == Way::Checkpoint) return a;
  return nullptr;
}

void add_hooks_of_module(PyObject* object) {
  if (!Py_IS_TYPE(object, type_of_module_hooks())) return;
  for (const char* list : {"user_hooks", "user_pre_hooks"}) {
    const PyRef hooks = PyRef::steal(PyObject_GetAttrString(object, list));
    if (!hooks) PyErr_Clear();
    if (!hooks || !PyList_Check(hooks.get())) continue;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks.get()); ++i) add_code(PyList_GET_ITEM(hooks.get(), i));
  }
}

// Records a node's hook: a hook that torch adds for a module, or a hook of the program.
void add_hook(PyObject* hook) {
  PyObject* const closure = PyFunction_Check(hook) ? PyFunction_GET_CLOSURE(hook) : nullptr;
  bool of_module = false;
  for (Py_ssize_t i = 0; closure != nullptr && i < PyTuple_GET_SIZE(closure); ++i) {
    PyObject* const inner = PyCell_GET(PyTuple_GET_ITEM(closure, i));
    if (inner == nullptr || !Py_IS_TYPE(inner, type_of_module_hooks())) continue;
    add_hooks_of_module(inner);
    of_module = true;
  }
  if (!of_module) add_code(hook);
}

void leave(const AutogradTraceRun::Call& call) {
  for (const PyRef& code : call.codes) add(code.get());
  for (const PyRef& object : call.objects) add_hooks_of_module(object.get());  // the call may not have reached them
}

template <class OfPython, class Hook>
// type names: libtorch_python does not export the types
void add_hooks(const Hook& hook, std::string_view mangled, PyObject* out) {
  if (std::string_view(typeid(hook).name()).ends_with(mangled) &&
      PyList_Append(out, static_cast<const OfPython&>(hook).dict) < 0)
    throw PythonError{};
}

// Warns once per function.
void warn_of_checkpoint(PyObject* function) {
  static auto& reported = *new std::unordered_map<PyObject*, PyRef>;  // code objects
  if (PyMethod_Check(function)) function = PyMethod_GET_FUNCTION(function);
  PyObject* const key = PyFunction_Check(function) ? PyFunction_GET_CODE(function) : (PyObject*)Py_TYPE(function);
  if (!reported.emplace(key, PyRef::borrow(key)).second) return;
  const NotEvaluated own_business;
  const PyRef text = PyRef::steal(PyObject_Repr(key));
  PyErr_Clear();
  PyErr_WarnFormat(
      PyExc_RuntimeWarning, 1,
      "cresset: a checkpoint runs eagerly: what it computes again in the backward pass (%s) does more than "
      "compute",
      text ? utf8(text.get()) : "?");
  PyErr_Clear();
}

}  // namespace

PyRef objects_of(const std::vector<torch::autograd::Node*>& nodes) {
  PyRef out = checked(PyList_New(0));
  for (torch::autograd::Node* node : nodes) {
    if (PyList_Append(out.get(), checked(torch::autograd::functionToPyObject(node->getptr())).get()) < 0)
      throw PythonError{};
    for (const auto& hook : node->tensor_pre_hooks())
      add_hooks<torch::autograd::PyFunctionTensorPreHook>(*hook, "23PyFunctionTensorPreHookE", out.get());
    for (const auto& hook : node->pre_hooks())
      add_hooks<torch::autograd::PyFunctionPreHook>(*hook, "17PyFunctionPreHookE", out.get());
    for (const auto& hook : node->post_hooks())
      add_hooks<torch::autograd::PyFunctionPostHook>(*hook, "18PyFunctionPostHookE", out.get());
  }
  return out;
}

bool has_hook_of_c(PyObject* nodes) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(nodes); ++i) {
    PyObject *const node = PyList_GET_ITEM(nodes, i), *name, *hook;
    for (Py_ssize_t at = 0; PyDict_Check(node) && PyDict_Next(node, &at, &name, &hook);)
      if (is_of_c(hook)) return true;
  }
  return false;
}

void defer_to_autograd(const AutogradTraceRun& seen, bridge::Capture& capture,
                       const std::function<bool(PyObject*)>& lives_on) {
  if (seen.failed && !seen.calls.empty()) return leave(seen.calls.back());
  for (const AutogradTraceRun::Call& call : seen.calls)
    for (const PyRef& object : call.objects) {
      if (!lives_on(object.get())) continue;
      leave(call);
      capture.subgraphs().fail_subgraph(
          {BreakKind::UnguardedState, std::string("it looks at a ") + Py_TYPE(object.get())->tp_name +
                                          " that the program may change before the backward pass"});
    }
}

void leave_nodes_to_autograd(PyObject* nodes) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(nodes); ++i) {
    PyObject *const node = PyList_GET_ITEM(nodes, i), *name, *hook;
    for (Py_ssize_t at = 0; PyDict_Check(node) && PyDict_Next(node, &at, &name, &hook);) add_hook(hook);
    static PyObject* const of_modules = private_attribute("torch.nn.modules._functions", "BackwardHookFunction");
    const PyRef function = PyRef::steal(PyObject_GetAttrString(node, "_forward_cls"));
    if (function.get() == of_modules) continue;
    const PyRef backward = PyRef::steal(function ? PyObject_GetAttrString(function.get(), "backward") : nullptr);
    if (!backward) PyErr_Clear();
    if (backward) add_code(backward.get());
  }
}

bool leave_checkpoint_around(const CressetActivation* innermost) {
  const CressetActivation* const a = checkpoint_around(innermost);
  if (a == nullptr) return false;
  CressetFrameImage image;
  cresset_eval_image(a, CRESSET_BEFORE, &image);
  const size_t before = count_eager_autograd_calls();
  if (image.slot_count > 0 && image.slots[0] != nullptr) add_code(image.slots[0]);
  return count_eager_autograd_calls() != before;
}

size_t count_eager_autograd_calls() {
  const Feedback* const known = Feedback::current();
  return known == nullptr ? 0 : known->of_autograd.size() + known->users[0].known.size() + known->users[1].known.size();
}

bool is_for_others(UseOfAutograd use, PyCodeObject* code) {
  Feedback::Users* const known = users(use);
  if (known == nullptr) return false;
  if (known->known.count((PyObject*)code) != 0) return true;
  known->asked.try_emplace((PyObject*)code, PyRef::borrow((PyObject*)code), Nothing{});
  return false;
}

void defer_to_autograd(UseOfAutograd use) {
  if (Feedback::Users* const known = users(use)) known->known.merge(std::exchange(known->asked, {}));
}

bool calls_eager_autograd_function(PyObject* callee, const CressetCall& call) {
  if (!at::GradMode::is_enabled()) return false;
  const auto [function, self] = parts_of(callee);
  const Way way = way_of(function);
  if (way == Way::None || (!any_is_left() && way != Way::HookOfTensor)) return false;
  std::vector<PyObject*> args(call.args, call.args + call.nargs);
  if (self != nullptr) args.insert(args.begin(), self);
  if (args.size() < 2 || !brings_by(way, args)) return false;
  if (way == Way::Checkpoint) warn_of_checkpoint(args[0]);
  if (way == Way::Checkpoint || checkpoint_around(cresset_eval_current()) == nullptr) return true;
  return leave_checkpoint_around(cresset_eval_current()), false;
}

}  // namespace cresset::frontend
