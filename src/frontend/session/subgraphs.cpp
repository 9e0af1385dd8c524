#include "frontend/session/subgraphs.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>

#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {
namespace {

// Objects reachable from the roots without passing through older objects.
class Reach {
 public:
  Reach(const Provenance& provenance, std::unordered_set<PyObject*>& out) : provenance_(provenance), out_(out) {}

  bool from(PyObject* roots) {  // false: too many objects
    visit(roots, this);
    while (!todo_.empty()) {
      if (out_.size() > kMost) return false;
      PyObject* object = todo_.back();
      todo_.pop_back();
      if (PyFunction_Check(object)) {  // not its globals
        auto* f = (PyFunctionObject*)object;
        for (PyObject* part : {f->func_closure, f->func_defaults, f->func_kwdefaults, f->func_dict}) visit(part, this);
      } else {
        Py_TYPE(object)->tp_traverse(object, &Reach::visit, this);
      }
    }
    return true;
  }

 private:
  static constexpr size_t kMost = 100000;
  static int visit(PyObject* object, void* self) {
    auto& reach = *static_cast<Reach*>(self);
    if (object == nullptr || !PyObject_IS_GC(object) || PyType_Check(object) || PyModule_Check(object) ||
        is_tensor(object) || reach.provenance_.existed(object))
      return 0;
    if (reach.out_.insert(object).second) reach.todo_.push_back(object);
    return 0;
  }
  const Provenance& provenance_;
  std::unordered_set<PyObject*>& out_;
  std::vector<PyObject*> todo_;
};

bool is_number(PyObject* object) { return is_symbolic_number(object) || is_constant_value(object); }

}  // namespace

void Subgraphs::begin_subgraph(PyObject* roots) {
  outer_.emplace_back();
  if (!Reach(provenance_, outer_.back()).from(roots))
    segment_.capture().subgraphs().fail_subgraph({BreakKind::Limits, "too many objects can be reached from it"});
}

void Subgraphs::enter_in_record(const CressetActivation& activation) {
  AutogradTraceRun& seen = *record_run_;
  if (seen.failed || !segment_.capture().subgraphs().subgraph_failure().empty() || activation.instruction >= 0) return;
  if (seen.calls.empty() || activation.caller == nullptr || activation.caller == seen.outside)
    seen.calls.emplace_back();
  seen.calls.back().codes.push_back(PyRef::borrow((PyObject*)activation.code));
}

// Records an object that other code may change before the backward pass, if the object outlives the segment.
void Subgraphs::touch_in_record(PyObject* object) {
  if (object == nullptr || record_run_->calls.empty() || record_run_->failed) return;
  if (is_constant_value(object) || PyTuple_CheckExact(object) || PyType_Check(object) || PyModule_Check(object) ||
      is_tensor(object) || PyFunction_Check(object) ||
      (provenance_.existed(object) && provenance_.argument_path(object) == nullptr))
    return;
  std::vector<PyRef>& objects = record_run_->calls.back().objects;
  const auto is_it = [&](const PyRef& known) { return known.get() == object; };
  if (std::none_of(objects.begin(), objects.end(), is_it)) objects.push_back(PyRef::borrow(object));
}

// The attribute's value in the object's dictionary or structure.
static PyRef value_now(PyObject* owner, PyObject* name) {
  PyObject* const found = _PyType_Lookup(Py_TYPE(owner), name);
  if (found != nullptr && Py_IS_TYPE(found, &PyGetSetDescr_Type)) {
    PyRef value = PyRef::steal(Py_TYPE(found)->tp_descr_get(found, owner, (PyObject*)Py_TYPE(owner)));
    if (!value) PyErr_Clear();
    return value;
  }
  PyObject* const dict = instance_dict(owner);
  return PyRef::borrow(dict != nullptr ? PyDict_GetItemWithError(dict, name) : nullptr);
}

// A function of the autograd graph may change an attribute of an object of the call, if the graph's functions restore
// the value. A backward pass then repeats both changes, and they stay invisible unless the object outlives the segment.
bool Subgraphs::may_be_changed_back(const CressetWrite& write) {
  if (!runs_record() || write.kind != CRESSET_WRITE_ATTRIBUTE || provenance_.existed(write.owner)) return false;
  if (const ObjectRecord* const known = provenance_.record_of(write.owner); known != nullptr && known->made)
    return false;
  PyObject* const dict = instance_dict(write.owner);
  PyTypeObject* const type = Py_TYPE(write.owner);
  if (!is_heap_type(type) || PyType_Check(write.owner) || PyModule_Check(write.owner)) return false;
  PyObject* const found = _PyType_Lookup(type, write.key);
  const bool is_slot = found != nullptr && Py_TYPE(found)->tp_descr_set != nullptr;
  // C getset attributes may be restored too, such as a context's needs_input_grad.
  if (is_slot ? !Py_IS_TYPE(found, &PyGetSetDescr_Type) : dict == nullptr) return false;
  touch(write.owner);
  std::vector<AutogradTraceRun::Change>& changes = record_run_->changes;
  const auto is_it = [&](const AutogradTraceRun::Change& c) {
    return c.owner.get() == write.owner && PyUnicode_Compare(c.name.get(), write.key) == 0;
  };
  if (std::none_of(changes.begin(), changes.end(), is_it))
    changes.push_back({PyRef::borrow(write.owner), PyRef::borrow(write.key), value_now(write.owner, write.key),
                       record_run_->calls.size() - 1});
  return true;
}

void Subgraphs::check_changed_back(AutogradTraceRun& seen) {
  for (const AutogradTraceRun::Change& change : seen.changes) {
    if (value_now(change.owner.get(), change.name.get()).get() == change.before.get()) continue;
    std::swap(seen.calls[change.call], seen.calls.back());
    segment_.capture().subgraphs().fail_subgraph({BreakKind::SideEffect, std::string("it leaves an object changed (") +
                                                                             Py_TYPE(change.owner.get())->tp_name +
                                                                             "." + utf8(change.name.get()) + ")"});
    return;
  }
}

bool Subgraphs::is_outer(PyObject* object) const {
  if (const ObjectRecord* const found = provenance_.record_of(object);
      found != nullptr && (found->known || found->made))
    return true;
  for (const std::unordered_set<PyObject*>& objects : outer_)
    if (objects.count(object) != 0) return true;
  return false;
}

void Subgraphs::fail_subgraph(const char* what) {
  if (runs_record()) record_run_->failed = true;
  segment_.capture().set_location();
  segment_.capture().subgraphs().fail_subgraph(segment_.capture().located({BreakKind::SideEffect, what}));
  PyErr_SetString(PyExc_RuntimeError, what);
  throw PythonError{};
}

void Subgraphs::no_effect_on(PyObject* object, const char* what, const char* method) {
  if (!is_inside()) return;
  if (!is_outer(object)) {
    if (!runs_record()) return;
    // Objects older than the call are outside, even if only autograd refers to them, such as a hook's variables.
    if (provenance_.is_new(object)) return record_run_->remember(object);
  }
  if (method == nullptr) fail_subgraph(what);
  fail_subgraph((std::string(what) + " (" + Py_TYPE(object)->tp_name + "." + method + ")").c_str());
}

// Whether the written value is the current value: `module.counter += 1` stores the same buffer.
static bool changes_nothing(const CressetWrite& write) {
  if (write.value == nullptr) return false;
  if (write.kind == CRESSET_WRITE_ITEM)
    return PyDict_CheckExact(write.owner) && PyDict_GetItemWithError(write.owner, write.key) == write.value;
  return write.kind == CRESSET_WRITE_ATTRIBUTE && value_now(write.owner, write.key).get() == write.value;
}

void Subgraphs::no_write_in_subgraph(const CressetWrite& write) {
  if (changes_nothing(write)) return;
  if (is_tensor(write.owner)) {  // writes to its elements are captured
    if (write.kind == CRESSET_WRITE_ATTRIBUTE) no_effect_on(write.owner, "it sets an attribute of a tensor");
    return;
  }
  if (is_number(write.owner) || PyTuple_Check(write.owner)) return;
  if (write.kind == CRESSET_WRITE_GLOBAL) fail_subgraph("it writes to a global name");
  if (is_outer(write.owner) && may_be_changed_back(write)) return;
  no_effect_on(write.owner, "it writes to an object from outside");
}

void Subgraphs::no_call_in_subgraph(const CCall& what, const CressetCall& call) {
  if (what.effect == CEffect::Writes || what.effect == CEffect::ReadsAndWrites)
    no_effect_on(what.self, "it changes a container from outside", what.name);
  if (what.effect == CEffect::SetsAttribute && (what.self != nullptr || call.nargs > 0))
    no_effect_on(what.self != nullptr ? what.self : call.args[0], "it sets an attribute of an object from outside");
  if (what.self != nullptr && PyIter_Check(what.self)) no_effect_on(what.self, "it advances an iterator from outside");
  for (Py_ssize_t i = 0; i < call.nargs; ++i)
    if (PyIter_Check(call.args[i])) no_effect_on(call.args[i], "it advances an iterator from outside");
}

}  // namespace cresset::frontend
