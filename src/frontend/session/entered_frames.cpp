// Which frames belong to the program, and the actions when a frame starts.
#include "frontend/session/entered_frames.h"

#include <string_view>

#include "frontend/cpython/code_origin.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/frames/resume_point.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {

namespace {

// Whether the code implements symbolic numbers, or is compiler code outside of the program.
bool is_machinery(PyCodeObject* code) {
  const std::string_view file = path_in_torch(code->co_filename);
  if (file.empty())  // only the first user of a module runs its import
    return std::string_view(utf8(code->co_filename)).starts_with("<frozen importlib");
  // After its first use, torch.compile counts every new module. The count is not part of the program, and its keys are
  // addresses.
  if (file.ends_with("mutation_guard.py")) return true;
  if (file.starts_with("fx/experimental") || file.starts_with("fx\\experimental")) return true;
  const std::string_view name = utf8(code->co_qualname);  // SymInt, SymFloat, SymBool; a user's class may be Symbol
  return file == "__init__.py" && name.starts_with("Sym");
}

// Logger.isEnabledFor caches its answers under a lock. It is called once before the program's call, which then only
// reads the cache.
bool is_logger_question(PyCodeObject* code) {
  static PyObject* const question = [] {
    const PyRef logging = import_module("logging");
    const PyRef logger = checked(PyObject_GetAttrString(logging.get(), "Logger"));
    const PyRef method = checked(PyObject_GetAttrString(logger.get(), "isEnabledFor"));
    return Py_NewRef(PyFunction_Check(method.get()) ? PyFunction_GET_CODE(method.get()) : Py_None);
  }();
  return (PyObject*)code == question;
}

void ask_beforehand(CressetActivation* activation) {
  CressetFrameImage image;
  cresset_eval_image(activation, CRESSET_BEFORE, &image);
  if (image.slot_count < 2 || image.slots[0] == nullptr || image.slots[1] == nullptr) return;
  PyObject* const args[] = {image.slots[0], image.slots[1]};
  if (!PyRef::steal(PyObject_Vectorcall(activation->function, args, 2, nullptr))) PyErr_Clear();
}

// Whether the code belongs to nested tensors. Their lengths are symbolic numbers of another kind, with identity only.
bool is_of_nested_tensors(PyCodeObject* code) {
  const std::string_view file = path_in_torch(code->co_filename);
  return file.starts_with("nested/") || file.starts_with("nested\\");
}

}  // namespace

EnteredFrames::CodeRole EnteredFrames::role_of(PyCodeObject* code) {
  if (const CodeRole* const known = roles_.find(code)) return *known;
  CodeRole role = CodeRole::Program;
  provenance_.keep(PyRef::borrow((PyObject*)code));
  if (is_machinery(code)) role = CodeRole::Machinery;
  if (is_logger_question(code)) role = CodeRole::LoggerQuestion;
  if (is_of_nested_tensors(code)) role = CodeRole::NestedTensors;
  const std::string_view ours = path_in_cresset(code->co_filename);
  if (ours.starts_with("_substitutes/") || ours.starts_with("_decompositions/")) role = CodeRole::Replacement;
  if (ours == "_substitutes/sym_numpy_int.py" || ours == "_numbers.py") role = CodeRole::Machinery;
  return roles_[code] = role;
}

// torch calls a mode: the call is guarded by the modes at its beginning.
void EnteredFrames::learn_mode(const CressetActivation& activation) {
  const std::string_view name = utf8(activation.code->co_name);
  if (name != "__torch_function__" && name != "__torch_dispatch__") return;
  CressetFrameImage image;
  cresset_eval_image(&activation, CRESSET_BEFORE, &image);
  PyObject* const self = image.slot_count > 0 ? image.slots[0] : nullptr;
  if (self != nullptr && !PyType_Check(self) && !provenance_.is_new(self)) reads_.learn(self);
}

void EnteredFrames::unseen() {
  if (!segment_.is_open()) return;
  segment_.refuse(BreakKind::Debugger, kWatched);
  segment_.set_unseen();
}

void EnteredFrames::learn_default(PyObject* function, PyObject* keyword, PyObject* value) {
  PyObject* by_keyword = keyword != nullptr ? ((PyFunctionObject*)function)->func_kwdefaults : nullptr;
  if (by_keyword != nullptr) return reads_.read_key(by_keyword, keyword, value);
  reads_.learn(value);
}

// C code passed the arguments to a function, so defaults among them were not reported by a hook.
void EnteredFrames::learn_defaults(const CressetActivation& activation) {
  PyObject* const function = activation.function;
  PyObject* const defaults = PyFunction_GET_DEFAULTS(function);
  PyObject* const by_keyword = ((PyFunctionObject*)function)->func_kwdefaults;
  if (defaults == nullptr && by_keyword == nullptr) return;
  CressetFrameImage image;
  cresset_eval_image(&activation, CRESSET_BEFORE, &image);
  const Py_ssize_t count = activation.code->co_argcount;
  const Py_ssize_t first = count - (defaults != nullptr ? PyTuple_GET_SIZE(defaults) : 0);
  for (Py_ssize_t i = first; i < count; ++i)
    if (image.slots[i] == PyTuple_GET_ITEM(defaults, i - first)) learn_default(function, nullptr, image.slots[i]);
  for (Py_ssize_t i = count; by_keyword != nullptr && i < count + activation.code->co_kwonlyargcount; ++i) {
    PyObject* const name = PyTuple_GET_ITEM(activation.code->co_localsplusnames, i);
    PyObject* const value = PyDict_GetItemWithError(by_keyword, name);
    if (value != nullptr && image.slots[i] == value) learn_default(function, name, value);
  }
  PyErr_Clear();
}

// The cells of an older function are older, too.
void EnteredFrames::learn_closure(ObjectRecord& function) {
  if (std::exchange(function.function_held, true)) return;
  segment_.guards().classes().function(function.object);
  PyObject* const closure = PyFunction_GET_CLOSURE(function.object);
  for (Py_ssize_t i = 0; closure != nullptr && i < PyTuple_GET_SIZE(closure); ++i)
    reads_.learn(PyTuple_GET_ITEM(closure, i));
}

void EnteredFrames::learn_what_it_holds(PyObject* function) {
  if (!PyFunction_Check(function) || !provenance_.existed(function)) return;
  learn_closure(provenance_.record(function));
  PyObject* const defaults = PyFunction_GET_DEFAULTS(function);
  for (Py_ssize_t i = 0; defaults != nullptr && i < PyTuple_GET_SIZE(defaults); ++i)
    reads_.learn(PyTuple_GET_ITEM(defaults, i));
  PyObject *by_keyword = ((PyFunctionObject*)function)->func_kwdefaults, *name, *value;
  Py_ssize_t position = 0;
  while (by_keyword != nullptr && PyDict_Next(by_keyword, &position, &name, &value))
    reads_.read_key(by_keyword, name, value);
}

CressetAction EnteredFrames::enter(CressetActivation& activation) {
  if (activation.caller == nullptr && activation.instruction < 0) ++outermost_frames_;
  if (segment_.capture().recording != 0) return CRESSET_NATIVE;
  if (!segment_.is_open()) return CRESSET_RUN;
  if (subgraphs_.runs_record()) subgraphs_.enter_in_record(activation);
  if (activation.is_generator && activation.generator != nullptr)
    subgraphs_.no_effect_on(activation.generator, "it advances a generator from outside");
  if (activation.is_generator && activation.generator != nullptr && provenance_.existed(activation.generator))
    segment_.refuse(BreakKind::SideEffect, "advances a generator that was there before");
  if (activation.entered_from_c && activation.instruction < 0) learn_mode(activation);
  switch (role_of(activation.code)) {
    case CodeRole::Machinery:
      return CRESSET_NATIVE;
    case CodeRole::LoggerQuestion:
      if (activation.instruction < 0) ask_beforehand(&activation);
      break;
    case CodeRole::NestedTensors:
      segment_.refuse(BreakKind::UnsupportedLayout, "works on nested tensors");
      if (!segment_.capture().closed()) segment_.capture().flush({BreakKind::UnsupportedLayout, "nested tensors"});
      bridge::Capture::leave_dispatch_state();  // permanent: for nested tensors the keys select other kernels
      return CRESSET_NATIVE;
    default:
      break;
  }
  // Generators are resumed behind their first instructions, so the start of their frame is not reported.
  if ((activation.instruction >= 0 && !activation.is_generator) || activation.function == nullptr) return CRESSET_RUN;
  ObjectRecord* const function = provenance_.record_of(activation.function);
  if (function == nullptr || !function->known) return CRESSET_RUN;
  if (activation.entered_from_c || activation.is_generator) learn_defaults(activation);
  learn_closure(*function);
  return CRESSET_RUN;
}

}  // namespace cresset::frontend
