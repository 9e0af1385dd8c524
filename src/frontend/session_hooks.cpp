// What the evaluator tells a session, and calls of C functions.
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/python_symnode.h>

#include <string_view>

#include "frontend/session.h"

namespace cresset::frontend {

// `type(n)` and `isinstance(n, int)` say of a symbolic number what they say of the number.
CressetAction Session::before_call(const CressetCall& call, PyObject** result) {
  if (call.evaluated || call.nargs == 0 || call.kwnames != nullptr) return CRESSET_RUN;
  static PyObject* const is_instance = PyDict_GetItemString(PyEval_GetBuiltins(), "isinstance");
  const bool asks_type = call.callable == (PyObject*)&PyType_Type && call.nargs == 1;
  const bool asks_instance = call.callable == is_instance && call.nargs == 2;
  if ((asks_type || asks_instance) && torch::is_symint(call.args[0])) {
    if (asks_type) return *result = Py_NewRef((PyObject*)&PyLong_Type), CRESSET_RESULT;
    static PyObject* const zero = PyLong_FromLong(0);
    const int is = PyObject_IsInstance(zero, call.args[1]);
    const int is_symbolic = is == 0 ? PyObject_IsInstance(call.args[0], call.args[1]) : is;
    if (is < 0 || is_symbolic < 0) return CRESSET_FAIL;
    return *result = Py_NewRef(is_symbolic ? Py_True : Py_False), CRESSET_RESULT;
  }
  const CCall what = classify_call(call.callable, call.args, call.nargs);
  if (what.effect == CEffect::Pure) return CRESSET_RUN;
  if (what.effect == CEffect::Outside) {
    refuse("calls " + describe_callable(call.callable));
    return CRESSET_RUN;
  }
  const std::string_view name = what.name;
  const bool one_key = what.self != nullptr && PyDict_Check(what.self) &&
                       (name == "get" || name == "__getitem__" || name == "__contains__");
  if (what.effect != CEffect::Writes && what.self != nullptr && !one_key) read_whole(what.self);
  for (size_t i = what.first; i < static_cast<size_t>(call.nargs); ++i) read_whole(call.args[i]);
  if (what.effect == CEffect::Writes || what.effect == CEffect::ReadsAndWrites) will_write(what.self);
  return CRESSET_RUN;
}

void Session::after_call(const CressetCall& call, PyObject* result) {
  const CCall what = classify_call(call.callable, call.args, call.nargs);
  const size_t count = static_cast<size_t>(call.nargs);
  const std::string_view name = what.name;
  if (what.effect == CEffect::Pure || what.effect == CEffect::Outside) return;
  if (what.effect == CEffect::GetsAttribute) {
    PyObject* owner = what.self != nullptr ? what.self : call.args[0];
    const size_t at = what.self != nullptr ? what.first : 1;
    if (at < count) read_attribute(owner, call.args[at], result);
    return;
  }
  if (result == nullptr) return;
  if (what.effect == CEffect::SetsAttribute) {
    PyObject* owner = what.self != nullptr ? what.self : call.args[0];
    const size_t at = what.self != nullptr ? what.first : 1;
    static PyObject* const setter = PyUnicode_InternFromString("__setattr__");
    // A setter in Python was evaluated, and its own writes are known.
    if (what.self == nullptr && PyFunction_Check(_PyType_Lookup(Py_TYPE(owner), setter))) return;
    if (at < count) log_attribute(owner, call.args[at], at + 1 < count ? call.args[at + 1] : nullptr);
    return;
  }
  if (what.self == nullptr || !existed(what.self)) return;
  if (PyDict_Check(what.self) && (name == "get" || name == "__getitem__" || name == "__contains__") &&
      what.first < count) {
    PyObject* key = call.args[what.first];
    PyObject* value = PyDict_GetItemWithError(what.self, key);
    if (value == nullptr) PyErr_Clear();
    return read_key(what.self, key, value);
  }
  if (what.effect == CEffect::Writes || what.effect == CEffect::ReadsAndWrites) log_method(what, call);
  if (name == "pop" || name == "popleft" || name == "setdefault" || name == "__getitem__" || name == "popitem")
    learn(result);
}

// The C method is called again at replay, not what a subclass made of it.
void Session::log_method(const CCall& what, const CressetCall& call) {
  PyObject* method = nullptr;
  const PyRef key = checked(PyUnicode_FromString(what.name));
  PyObject* bases = Py_TYPE(what.self)->tp_mro;
  for (Py_ssize_t i = 0; method == nullptr && i < PyTuple_GET_SIZE(bases); ++i) {
    auto* base = (PyTypeObject*)PyTuple_GET_ITEM(bases, i);
    PyObject* found = PyDict_GetItemWithError(base->tp_dict, key.get());
    if (found != nullptr && (Py_TYPE(found) == &PyMethodDescr_Type || Py_TYPE(found) == &PyWrapperDescr_Type))
      method = found;
  }
  if (method == nullptr) return refuse(std::string("calls ") + what.name);
  Write write{Write::Kind::Method, PyRef::borrow(what.self), PyRef::borrow(method), {}, PyRef::borrow(call.kwnames), 0};
  const size_t count = static_cast<size_t>(call.nargs) +
                       (call.kwnames != nullptr ? static_cast<size_t>(PyTuple_GET_SIZE(call.kwnames)) : 0);
  for (size_t i = what.first; i < count; ++i) write.values.push_back(PyRef::borrow(call.args[i]));
  writes_.push_back(std::move(write));
}

// The table. C++ exceptions stop here.
struct SessionHooks {
  template <class F>
  static int guarded(void* session, F&& f) {
    try {
      f(*static_cast<Session*>(session));
      return 0;
    } catch (const PythonError&) {
      return -1;
    } catch (const std::exception& e) {
      PyErr_SetString(PyExc_RuntimeError, e.what());
      return -1;
    }
  }

  static int read_name(void* s, CressetActivation* a, CressetNamespace where, PyObject* mapping, PyObject* name,
                       PyObject* value) {
    return guarded(s, [&](Session& session) {
      PyObject* globals = PyFunction_Check(a->function) ? PyFunction_GET_GLOBALS(a->function) : nullptr;
      if (where == CRESSET_IN_LOCALS || globals == nullptr) return;
      session.read_key(globals, name, where == CRESSET_IN_GLOBALS ? value : nullptr);
      if (where == CRESSET_IN_BUILTINS && PyDict_Check(mapping)) session.read_key(mapping, name, value);
    });
  }
  static int read_cell(void* s, CressetActivation*, PyObject* cell, int, PyObject* value) {
    return guarded(s, [&](Session& session) {
      if (!session.existed(cell)) return;
      session.learn(value);
      if (session.whole_.insert(cell).second) session.facts_.cell(cell, value);
    });
  }
  static int read_attribute(void* s, CressetActivation*, const CressetAttributeRead* read) {
    return guarded(s, [&](Session& session) { session.read_attribute(*read); });
  }
  static int read_item(void* s, CressetActivation*, PyObject* container, PyObject* key, PyObject* value) {
    return guarded(s, [&](Session& session) { session.read_item(container, key, value); });
  }
  static int read_length(void* s, CressetActivation*, PyObject* container, Py_ssize_t) {
    return guarded(s, [&](Session& session) { session.read_whole(container); });
  }
  static int read_iterator(void* s, CressetActivation*, PyObject* iterable, PyObject*) {
    return guarded(s, [&](Session& session) { session.read_whole(iterable); });
  }
  static int read_contains(void* s, CressetActivation*, PyObject* container, PyObject* item, int) {
    return guarded(s, [&](Session& session) {
      if (!session.existed(container)) return;
      if (!PyDict_Check(container)) return session.read_whole(container);
      PyObject* value = PyDict_GetItemWithError(container, item);
      if (value == nullptr) PyErr_Clear();
      session.read_key(container, item, value);
    });
  }
  static int read_compare(void* s, CressetActivation*, PyObject* left, PyObject* right, int, PyObject*) {
    return guarded(s, [&](Session& session) {
      session.read_whole(left);
      session.read_whole(right);
    });
  }
  static int read_default(void* s, CressetActivation*, PyObject*, Py_ssize_t, PyObject*, PyObject* value) {
    return guarded(s, [&](Session& session) { session.learn(value); });
  }
  static int before_write(void* s, CressetActivation*, const CressetWrite* write) {
    return guarded(s, [&](Session& session) { session.before_write(*write); });
  }
  static int after_write(void* s, CressetActivation*, const CressetWrite* write) {
    return guarded(s, [&](Session& session) { session.after_write(*write); });
  }
  static CressetAction before_call(void* s, CressetActivation*, const CressetCall* call, PyObject** result) {
    CressetAction action = CRESSET_RUN;
    const int done = guarded(s, [&](Session& session) { action = session.before_call(*call, result); });
    return done < 0 ? CRESSET_FAIL : action;
  }
  static int after_call(void* s, CressetActivation*, const CressetCall* call, PyObject* result) {
    return guarded(s, [&](Session& session) { session.after_call(*call, result); });
  }
  static CressetAction enter_frame(void* s, CressetActivation* activation) {
    CressetAction action = CRESSET_RUN;
    return guarded(s, [&](Session& session) { action = session.enter(*activation); }) < 0 ? CRESSET_FAIL : action;
  }
};

PyRef Session::call(PyObject* function, PyObject* args, PyObject* kwargs) {
  learn(function);
  if (PyMethod_Check(function)) {
    learn(PyMethod_GET_SELF(function));
    learn(PyMethod_GET_FUNCTION(function));
    facts_.name(PyMethod_GET_SELF(function), "self");
  }
  CressetEvalHooks hooks{};
  hooks.session = this;
  hooks.read_name = &SessionHooks::read_name;
  hooks.read_cell = &SessionHooks::read_cell;
  hooks.read_attribute = &SessionHooks::read_attribute;
  hooks.read_item = &SessionHooks::read_item;
  hooks.read_length = &SessionHooks::read_length;
  hooks.read_iterator = &SessionHooks::read_iterator;
  hooks.read_contains = &SessionHooks::read_contains;
  hooks.read_compare = &SessionHooks::read_compare;
  hooks.read_default = &SessionHooks::read_default;
  hooks.before_write = &SessionHooks::before_write;
  hooks.after_write = &SessionHooks::after_write;
  hooks.before_call = &SessionHooks::before_call;
  hooks.after_call = &SessionHooks::after_call;
  hooks.enter_frame = &SessionHooks::enter_frame;
  if (cresset_eval_begin(&hooks) < 0) throw PythonError{};
  PyRef result = PyRef::steal(cresset_eval_call(function, args, kwargs));
  cresset_eval_end();
  return result;
}

}  // namespace cresset::frontend
