// Classes: the session's guards on them, and writes to them by the call.
#include <algorithm>

#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/eval/changers.h"
#include "frontend/session/session.h"
#include "frontend/values/bound_methods.h"
#include "frontend/values/captured_classes.h"
#include "frontend/values/number_classes.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {

std::vector<PyRef> Session::behind(PyObject* object) {
  std::vector<PyRef> out;
  const auto add = [&](const char* name) {
    PyRef member = PyRef::steal(PyObject_GetAttrString(object, name));
    if (!member) return PyErr_Clear();
    if (member.get() != Py_None) out.push_back(std::move(member));
  };
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyProperty_Type) add("fget"), add("fset"), add("fdel");
  static PyObject* const partial = module_attribute("functools", "partial");
  if (type == (PyTypeObject*)partial) add("func"), add("args"), add("keywords");
  if (type == &PyStaticMethod_Type || type == &PyClassMethod_Type) add("__func__");
  if (is_c_function(object) && has_own_self(object) && !is_foreign(PyCFunction_GET_SELF(object)))
    out.push_back(PyRef::borrow(PyCFunction_GET_SELF(object)));
  return out;
}

// C code calls its __get__ before the hook for the lookup.
static bool is_python_descriptor(PyObject* object) {
  return is_heap_type(Py_TYPE(object)) && Py_TYPE(object)->tp_descr_get != nullptr;
}

// Includes the methods that C code calls without a hook.
void Session::learn_class(PyTypeObject* type) {
  if (is_class_of_numbers(type) || facts_->classes().type(type) == nullptr) return;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = (PyTypeObject*)PyTuple_GET_ITEM(type->tp_mro, i);
    if (!is_heap_type(base) || !first((PyObject*)base, Py_NotImplemented)) continue;
    PyObject *name, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(type_dict(base), &position, &name, &value))
      if (is_python_descriptor(value) || (is_special_name(name) && (PyFunction_Check(value) || !behind(value).empty())))
        learn(value);
  }
}

// The program looks up a name in a class that it did not create.
void Session::read_class(PyTypeObject* type, PyObject* name) {
  AddressPair& recent = class_reads_[address_hash(AddressPair{type, name}) >> (64 - kClassReads)];
  if (recent == AddressPair{type, name} || !existed((PyObject*)type)) return;
  recent = {type, name};
  if (!first((PyObject*)type, name) || is_class_of_numbers(type)) return;
  if (!PyUnicode_CHECK_INTERNED(name)) kept_.push_back(PyRef::borrow(name));
  facts_->classes().name(type, name);
}

// Guards the class of an object of the call, if the class is older and was reached without a hook.
void Session::learn_old_class(PyTypeObject* type) {
  if (is_heap_type(type) && !existed((PyObject*)type) && !is_young((PyObject*)type)) learn((PyObject*)type);
}

// Names which class decorators add only once: order methods, attribute hooks, a hash. Each bit stands for a name that
// the class has.
static unsigned given_once(PyTypeObject* type) {
  static constexpr const char* kOnce[] = {"__lt__",      "__le__",      "__gt__",  "__ge__",
                                          "__setattr__", "__delattr__", "__hash__"};
  unsigned out = 0;
  for (size_t i = 0; i < std::size(kOnce); ++i) {
    PyObject* const known = PyDict_GetItemString(type_dict(type), kOnce[i]);
    out |= static_cast<unsigned>(known != nullptr && known != Py_None) << i;
  }
  return out;
}

// Guards cover the contents of a class before the call's writes.
void Session::will_write_class(PyTypeObject* type) {
  learn_old_class(type);
  if (existed((PyObject*)type)) facts_->classes().type(type);
  will_decorate(type);
}

void Session::will_decorate(PyTypeObject* type) {
  const auto is_it = [&](const auto& entry) { return entry.first.get() == (PyObject*)type; };
  if (is_shared_class(type) && std::none_of(decorated_.begin(), decorated_.end(), is_it))
    decorated_.emplace_back(PyRef::borrow((PyObject*)type), given_once(type));
}

// Checked after a decorator has finished, because it reads the class before it writes.
bool Session::changes_shared_class() {
  for (const auto& [type, given] : decorated_)
    if (!changes_shared_class_ && given_once((PyTypeObject*)type.get()) != given)
      refuse_shared_class((PyTypeObject*)type.get());
  return changes_shared_class_;
}

// setattr(owner, name, value), delattr(owner, name), owner.__setattr__(name, value).
void Session::will_set_attribute(const CCall& what, const CressetCall& call) {
  PyObject* const owner = what.self != nullptr ? what.self : call.nargs > 0 ? call.args[0] : nullptr;
  const Py_ssize_t name = what.self != nullptr ? static_cast<Py_ssize_t>(what.first) : 1;
  if (owner == nullptr || name >= call.nargs) return;
  if (is_symbolic_number(owner)) no_attributes_of(owner, call.args[name]);
  if (PyType_Check(owner)) will_write_class((PyTypeObject*)owner);
  CressetChanger changer;
  const bool deletes = name + 1 == call.nargs;
  if (cresset_find_changer(owner, call.args[name], deletes, what.self != nullptr, &changer) == 0 ||
      changer.found == nullptr)
    return;
  read_attribute({.owner = (PyObject*)Py_TYPE(owner),
                  .name = call.args[name],
                  .value = changer.found,
                  .found = changer.found,
                  .place = CRESSET_AT_CLASS});
}

void Session::refuse_shared_class(PyTypeObject* type) {
  changes_shared_class_ = true;
  refuse(BreakKind::ChangedClass, std::string("changes class ") + type->tp_name + ", which an earlier piece made");
}

void Session::log_class(PyTypeObject* type, PyObject* name) {
  const std::string_view text = utf8(name, "");
  // dataclass and similar decorators: the same at each call
  const bool by_decorator = text.starts_with("__") && text.ends_with("__");
  if (!by_decorator && is_shared_class(type)) return refuse_shared_class(type);
  if (is_special_name(name))
    return refuse(BreakKind::ChangedClass, std::string("changes ") + utf8(name) + " of class " + type->tp_name);
  if (!facts_->classes().speaks_of(type, name)) facts_->classes().elsewhere(type, name);
}

}  // namespace cresset::frontend
