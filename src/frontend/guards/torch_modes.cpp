#include "frontend/guards/torch_modes.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "frontend/cpython/kept_for_good.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/guards/tensor_class.h"

namespace cresset::frontend {

namespace {

using Methods = std::vector<std::pair<PyObject*, PyObject*>>;  // by name; owned for the whole process

// Under the GIL. A class is compared only when its version tag has changed.
class TensorClasses {
 public:
  TensorClasses() {
    for (PyTypeObject* type : types()) as_made_.push_back(checked(PyDict_Copy(type_dict(type))));
    look();
  }

  void update() {
    for (size_t i = 0; i < tags_.size(); ++i)
      if (const auto tag = types()[i]->tp_version_tag; tag == 0 || tag != tags_[i]) return look();
  }
  uintptr_t state() const { return state_; }
  bool operators() const { return operators_; }

 private:
  static std::array<PyTypeObject*, 2> types() {
    return {(PyTypeObject*)THPVariableClass, (PyTypeObject*)ParameterClass};
  }

  // A new name that no class defined before is not a torch method.
  static bool is_inherited(PyTypeObject* type, PyObject* name) {
    for (PyTypeObject* base = type->tp_base; base != nullptr; base = base->tp_base)
      if (PyDict_Contains(type_dict(base), name) == 1) return true;
    return false;
  }

  void look() {
    Methods changed;
    for (size_t i = 0; i < tags_.size(); ++i) {
      PyTypeObject* const type = types()[i];
      static PyObject* const any = PyUnicode_InternFromString("__doc__");
      _PyType_Lookup(type, any);  // assigns a version tag
      tags_[i] = type->tp_version_tag;
      add_changes(type, type_dict(type), as_made_[i].get(), changed);
    }
    std::sort(changed.begin(), changed.end());
    operators_ = std::any_of(changed.begin(), changed.end(), [](const auto& method) {
      return method.second != nullptr && PyFunction_Check(method.second) &&
             std::string_view(utf8(method.first)).starts_with("__");
    });
    const auto known = std::find(known_.begin(), known_.end(), changed);
    state_ = changed.empty() ? 0 : static_cast<uintptr_t>(known - known_.begin()) + 1;
    if (known != known_.end() || changed.empty()) return;
    for (const auto& [name, method] : changed) Py_INCREF(name), Py_XINCREF(method);
    known_.push_back(std::move(changed));
  }

  static void add_changes(PyTypeObject* type, PyObject* now, PyObject* as_made, Methods& out) {
    PyObject *name, *method;
    for (Py_ssize_t at = 0; PyDict_Next(now, &at, &name, &method) != 0;) {
      PyObject* const before = PyDict_GetItemWithError(as_made, name);
      if (before == method || is_kept_in_class(name)) continue;
      if (before != nullptr || is_inherited(type, name)) out.emplace_back(name, method);
    }
    for (Py_ssize_t at = 0; PyDict_Next(as_made, &at, &name, &method) != 0;)
      if (PyDict_Contains(now, name) == 0) out.emplace_back(name, nullptr);
  }

  std::vector<PyRef> as_made_;
  std::array<unsigned int, 2> tags_{};
  std::vector<Methods> known_;
  uintptr_t state_ = 0;
  bool operators_ = false;
};

TensorClasses& tensor_classes() {
  static auto& known = *new TensorClasses;
  known.update();
  return known;
}

}  // namespace

uintptr_t tensor_class_state() { return tensor_classes().state(); }
bool tensor_operators_replaced() { return tensor_classes().operators(); }

TorchState TorchState::now() {
  TorchState s{bridge::TorchModes::now()};
  thread_local const at::impl::SavedTensorDefaultHooksTLS& saved = at::SavedTensorDefaultHooks::get_tls_state();
  const auto add = [&](const void* mode) { s.modes = s.modes * 31 + reinterpret_cast<uintptr_t>(mode); };
  const int64_t functions = at::impl::PythonTorchFunctionTLS::stack_len();
  for (int64_t i = 0; i < functions; ++i)
    add(at::impl::PythonTorchFunctionTLS::get_stack_at(i)->ptr(getPyInterpreter()));
  const int64_t dispatches = c10::impl::TorchDispatchModeTLS::stack_len();
  for (int64_t i = 0; i < dispatches; ++i)
    add(c10::impl::TorchDispatchModeTLS::get_stack_at(i)->ptr(getPyInterpreter()));
  if (const auto& hooks = saved.stack; !hooks.empty()) {
    s.modes = s.modes * 31 + hooks.size();
    if (s.grad_mode) add(hooks.top().first.ptr(getPyInterpreter()));  // otherwise nothing is saved
  }
  if (const uintptr_t methods = tensor_class_state(); methods != 0) add(reinterpret_cast<const void*>(methods));
  return s;
}

namespace {

PyRef weakly(PyObject* mode) {
  PyRef reference = PyRef::steal(PyWeakref_NewRef(mode, nullptr));
  if (!reference) PyErr_Clear();
  return reference ? std::move(reference) : PyRef::borrow(mode);
}

}  // namespace

std::vector<PyRef> modes_now() {
  std::vector<PyRef> out;
  for (int64_t i = 0; i < at::impl::PythonTorchFunctionTLS::stack_len(); ++i)
    out.push_back(weakly(at::impl::PythonTorchFunctionTLS::get_stack_at(i)->ptr(getPyInterpreter())));
  for (int64_t i = 0; i < c10::impl::TorchDispatchModeTLS::stack_len(); ++i)
    out.push_back(weakly(c10::impl::TorchDispatchModeTLS::get_stack_at(i)->ptr(getPyInterpreter())));
  const auto& hooks = at::SavedTensorDefaultHooks::get_tls_state().stack;
  if (!hooks.empty() && c10::GradMode::is_enabled()) out.push_back(weakly(hooks.top().first.ptr(getPyInterpreter())));
  return out;
}

bool are_alive(const std::vector<PyRef>& modes) {
  return std::none_of(modes.begin(), modes.end(), [](const PyRef& mode) {
    return PyWeakref_CheckRef(mode.get()) && PyWeakref_GetObject(mode.get()) == Py_None;
  });
}

bool packs_saved_tensors() {
  return c10::GradMode::is_enabled() && !at::SavedTensorDefaultHooks::get_tls_state().stack.empty();
}

std::string difference(const TorchState& expected, const TorchState& got) {
  if (static_cast<const bridge::TorchModes&>(expected) != got) return bridge::difference(expected, got);
  return "__torch_function__ or __torch_dispatch__ modes, or methods of torch.Tensor, changed";
}

namespace {

bool plain_value(PyObject* object) {
  return PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object);
}

bool same(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b) || !plain_value(a)) return false;
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

std::string text_of(PyObject* object) {
  PyRef text = PyRef::steal(PyObject_Str(object));
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (utf8 == nullptr) PyErr_Clear();
  return utf8 != nullptr ? utf8 : "?";
}

}  // namespace

void ModuleGuards::add_dict(PyObject* dict, const std::string& path) {
  if (names_only_) return;
  DictGuard guard;
  guard.dict = PyRef::borrow(dict);
  guard.version = dict_version(dict);
  guard.path = path;
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &value)) guard.items.emplace_back(PyRef::borrow(key), PyRef::borrow(value));
  dicts_.push_back(std::move(guard));
}

// Joins "layer.0" and "weight" to "layer.0.weight".
static std::string joined(const std::string& path, PyObject* key) {
  return path.empty() ? text_of(key) : path + "." + text_of(key);
}

void ModuleGuards::add_module(PyObject* module, const std::string& path, int depth) {
  static PyObject* const stores[] = {PyUnicode_InternFromString("_parameters"), PyUnicode_InternFromString("_buffers")};
  static PyObject* const modules = PyUnicode_InternFromString("_modules");
  PyObject** slot = _PyObject_GetDictPtr(module);
  PyObject* dict = slot != nullptr ? *slot : nullptr;
  if (dict == nullptr || depth > 200 || !modules_.insert(dict).second) return;
  add_dict(dict, path);
  for (PyObject* name : stores) {
    PyObject* tensors = PyDict_GetItem(dict, name);
    if (tensors == nullptr || !PyDict_Check(tensors)) continue;
    add_dict(tensors, path);
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(tensors, &position, &key, &value))
      if (is_tensor(value)) tensors_.push_back({joined(path, key), value});
  }
  for (const char* name : {"_forward_hooks", "_forward_pre_hooks"}) {
    if (names_only_) break;
    PyObject* hooks = PyDict_GetItemString(dict, name);
    if (hooks != nullptr && PyDict_Check(hooks)) add_dict(hooks, path + "." + name);
  }
  PyObject* children = PyDict_GetItem(dict, modules);
  if (children == nullptr || !PyDict_Check(children)) return;
  add_dict(children, path);
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(children, &position, &key, &value))
    if (is_module(value)) add_module(value, joined(path, key), depth + 1);
}

void ModuleGuards::add(PyObject* module) { add_module(module, "", 0); }

void ModuleGuards::add_reachable(PyObject* callable) {
  if (is_module(callable)) return add(callable);
  if (PyMethod_Check(callable)) {
    if (is_module(PyMethod_GET_SELF(callable))) add(PyMethod_GET_SELF(callable));
    callable = PyMethod_GET_FUNCTION(callable);
  }
  if (!PyFunction_Check(callable)) return;
  if (PyObject* closure = PyFunction_GET_CLOSURE(callable)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(closure); ++i) {
      PyObject* content = PyCell_GET(PyTuple_GET_ITEM(closure, i));
      if (content != nullptr && is_module(content)) add(content);
    }
  }
  PyRef names = PyRef::steal(PyObject_GetAttrString(PyFunction_GET_CODE(callable), "co_names"));
  PyObject* globals = PyFunction_GET_GLOBALS(callable);
  if (!names) return PyErr_Clear();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i) {
    PyObject* value = PyDict_GetItem(globals, PyTuple_GET_ITEM(names.get(), i));
    if (value != nullptr && is_module(value)) add(value);
  }
}

bool ModuleGuards::compare(DictGuard& guard, std::string* why) {
  const auto miss = [&](PyObject* key) {
    if (why != nullptr) *why = "attribute " + text_of(key) + " of module '" + guard.path + "' changed";
    return false;
  };
  PyObject *key, *value;
  Py_ssize_t position = 0;
  size_t i = 0;
  while (PyDict_Next(guard.dict.get(), &position, &key, &value)) {
    if (i >= guard.items.size() || !same(guard.items[i].first.get(), key) || !same(guard.items[i].second.get(), value))
      return miss(key);
    ++i;
  }
  if (i != guard.items.size()) return miss(guard.items[i].first.get());
  guard.version = dict_version(guard.dict.get());
  return true;
}

bool ModuleGuards::holds(std::string* why) {
  for (DictGuard& guard : dicts_) {
    if (guard.version != 0 && dict_version(guard.dict.get()) == guard.version) continue;
    if (!compare(guard, why)) return false;
  }
  return true;
}

int ModuleGuards::visit(visitproc visit, void* arg) const {
  for (const DictGuard& guard : dicts_) {
    Py_VISIT(guard.dict.get());
    for (const auto& [key, value] : guard.items) Py_VISIT(value.get());
  }
  return 0;
}

}  // namespace cresset::frontend
