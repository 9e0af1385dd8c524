// Writes to classes by the call.
#include <algorithm>

#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/eval/changers.h"
#include "frontend/session/write_log.h"
#include "frontend/values/bound_methods.h"
#include "frontend/values/captured_classes.h"
#include "frontend/values/number_classes.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {

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
void WriteLog::will_write_class(PyTypeObject* type) {
  reads_.learn_old_class(type);
  if (provenance_.existed((PyObject*)type)) segment_.guards().classes().type(type);
  will_decorate(type);
}

void WriteLog::will_decorate(PyTypeObject* type) {
  const auto is_it = [&](const auto& entry) { return entry.first.get() == (PyObject*)type; };
  if (is_shared_class(type) && std::none_of(decorated_.begin(), decorated_.end(), is_it))
    decorated_.emplace_back(PyRef::borrow((PyObject*)type), given_once(type));
}

// Checked after a decorator has finished, because it reads the class before it writes.
bool WriteLog::changes_shared_class() {
  for (const auto& [type, given] : decorated_)
    if (!changes_shared_class_ && given_once((PyTypeObject*)type.get()) != given)
      refuse_shared_class((PyTypeObject*)type.get());
  return changes_shared_class_;
}

// setattr(owner, name, value), delattr(owner, name), owner.__setattr__(name, value).
void WriteLog::will_set_attribute(const CCall& what, const CressetCall& call) {
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
  attributes_.read_attribute({.owner = (PyObject*)Py_TYPE(owner),
                              .name = call.args[name],
                              .value = changer.found,
                              .found = changer.found,
                              .place = CRESSET_AT_CLASS});
}

void WriteLog::refuse_shared_class(PyTypeObject* type) {
  changes_shared_class_ = true;
  segment_.refuse(BreakKind::ChangedClass,
                  std::string("changes class ") + type->tp_name + ", which an earlier graph segment created");
}

void WriteLog::log_class(PyTypeObject* type, PyObject* name) {
  const std::string_view text = utf8(name, "");
  // dataclass and similar decorators: the same at each call
  const bool by_decorator = text.starts_with("__") && text.ends_with("__");
  if (!by_decorator && is_shared_class(type)) return refuse_shared_class(type);
  if (is_special_name(name))
    return segment_.refuse(BreakKind::ChangedClass,
                           std::string("changes ") + utf8(name) + " of class " + type->tp_name);
  if (!segment_.guards().classes().speaks_of(type, name)) segment_.guards().classes().elsewhere(type, name);
}

}  // namespace cresset::frontend
