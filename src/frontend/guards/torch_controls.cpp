#include "frontend/guards/torch_controls.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "frontend/cpython/errors.h"
#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {
namespace {

// The namespace of a module which the program has imported, or nullptr. Borrowed.
PyObject* namespace_of(PyObject* name) {
  PyObject* const modules = PyImport_GetModuleDict();
  PyObject* const module = PyDict_Check(modules) ? PyDict_GetItemWithError(modules, name) : nullptr;
  if (module == nullptr) PyErr_Clear();
  return module != nullptr && PyModule_Check(module) ? PyModule_GetDict(module) : nullptr;
}

PyObject* item(PyObject* dict, PyObject* name) {
  PyObject* const found = PyDict_GetItemWithError(dict, name);
  if (found == nullptr) PyErr_Clear();
  return found;
}

Stance stance_named(std::string_view name) {
  static constexpr std::pair<std::string_view, Stance> kNames[] = {
      {"default", Stance::Default},
      {"force_eager", Stance::ForceEager},
      {"eager_on_recompile", Stance::EagerOnRecompile},
      {"fail_on_recompile", Stance::FailOnRecompile},
      {"eager_then_compile", Stance::EagerThenCompile},
      {"aot_eager_then_compile", Stance::AotEagerThenCompile},
  };
  const auto* const found =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& row) { return row.first == name; });
  return found != std::end(kNames) ? found->second : Stance::Invalid;
}

// Attributes which a release of torch lacks have their default.
TorchControls read_stance(PyObject* object) {
  TorchControls out;
  out.object = PyRef::borrow(object);
  const auto attribute = [&](const char* name) {
    PyRef value = PyRef::steal(PyObject_GetAttrString(object, name));
    if (!value) PyErr_Clear();
    return value;
  };
  const PyRef stance = attribute("stance"), skips = attribute("skip_guard_eval_unsafe"), backend = attribute("backend");
  if (stance) out.stance = PyUnicode_Check(stance.get()) ? stance_named(utf8(stance.get())) : Stance::Invalid;
  out.skips_guards = skips && PyObject_IsTrue(skips.get()) == 1;
  if (backend && backend.get() != Py_None) out.backend = backend.get();  // the stance object keeps it
  PyErr_Clear();
  return out;
}

// torch's compiler as far as it is imported. The namespaces and the last values are kept alive, so that a new object
// never has the address of the last one.
class State {
 public:
  const TorchControls& now() {
    if (frames_ == nullptr && !meet()) return controls_;
    PyObject* const counter = item(autograd_.get(), counter_name_);
    if (counter != counter_.get()) {
      counter_ = PyRef::borrow(counter);
      ++resets_;
    }
    PyObject* const stance = item(frames_, stance_name_);
    if (stance != controls_.object.get() && stance != nullptr) controls_ = read_stance(stance);
    controls_.resets = resets_;
    return controls_;
  }

 private:
  // torch.compiler.reset() makes a new counter of compilations. For the time before the first look at it, there is
  // another trace: the import of the compiler enters a backend into the table of backends, and a reset empties the
  // table.
  bool meet() {
    PyObject* const frames = namespace_of(frames_module_);
    if (frames == nullptr) return false;
    PyObject *const autograd = namespace_of(autograd_module_), *const backends = item(frames, backends_name_);
    if (autograd == nullptr || backends == nullptr || item(frames, stance_name_) == nullptr) return false;  // in import
    PyObject* const counter = item(autograd, counter_name_);
    if (counter == nullptr) return false;
    autograd_ = PyRef::borrow(autograd);
    counter_ = PyRef::borrow(counter);
    kept_ = PyRef::borrow(frames);
    frames_ = frames;
    if (PyDict_Check(backends) && PyDict_GET_SIZE(backends) == 0) ++resets_;
    return true;
  }

  PyObject* const frames_module_ = PyUnicode_InternFromString("torch._dynamo.eval_frame");
  PyObject* const autograd_module_ = PyUnicode_InternFromString("torch._dynamo.compiled_autograd");
  PyObject* const stance_name_ = PyUnicode_InternFromString("_stance");
  PyObject* const counter_name_ = PyUnicode_InternFromString("COMPILE_COUNTER");
  PyObject* const backends_name_ = PyUnicode_InternFromString("cached_backends");
  PyObject* frames_ = nullptr;  // nullptr: not imported yet
  PyRef kept_, autograd_, counter_;
  uint64_t resets_ = 0;
  TorchControls controls_;
};

}  // namespace

const TorchControls& torch_controls() {
  static auto& state = *new State;  // under the GIL
  return state.now();
}

bool graph_breaks_are_errors() {
  static PyObject *const module = PyUnicode_InternFromString("torch._dynamo.utils"), *const name =
                                                                                         PyUnicode_InternFromString(
                                                                                             "_error_on_graph_break");
  PyObject* const names = namespace_of(module);
  return names != nullptr && item(names, name) == Py_True;
}

void set_graph_break_error(const std::string& function, const BreakReason& why) {
  set_error("CaptureError", "cresset: a graph break of " + function + " where " + kErrorOnGraphBreak +
                                " holds: " + why.text() + " " + why.advice());
}

}  // namespace cresset::frontend
