#include "frontend/session/write_log.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "frontend/cache_entries/growing_containers.h"
#include "frontend/cpython/container_snapshot.h"
#include "frontend/cpython/dict_keys.h"
#include "frontend/cpython/kept_for_good.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/slots.h"
#include "frontend/feedback/opaque_calls.h"
#include "frontend/session/rules.h"
#include "frontend/trace_rules/context_variables.h"
#include "frontend/trace_rules/special_cases.h"
#include "frontend/trace_rules/transforms.h"
#include "frontend/values/captured_classes.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/symbols.h"
#include "frontend/values/value_objects.h"
#include "frontend/values/wrapper_tensors.h"

namespace cresset::frontend {

void WriteLog::will_write(PyObject* container) {
  if (!provenance_.existed(container) || !is_snapshot_container(container) ||
      provenance_.contents_before(container) != nullptr)
    return;
  if (provenance_.record_of(container)->whole) return;  // the earlier contents are guarded already
  PyRef copy = PyDict_Check(container)     ? copy_of_dict(container)
               : PyAnySet_Check(container) ? checked(PySet_New(container))
                                           : checked(PySequence_List(items_of(container).get()));
  provenance_.keep_contents_before(container, std::move(copy));
}

// The rules of writes. A rule notes the write, or says whether the operation runs between two segments.
struct WriteLog::Rules {
  using Action = std::optional<bool>;

  WriteLog& log;
  const CressetWrite& write;
  const bool is_attribute = write.kind == CRESSET_WRITE_ATTRIBUTE, is_item = write.kind == CRESSET_WRITE_ITEM;
  const bool stores_item = is_item && write.value != nullptr;

  Action display() const {
    if (write.kind != CRESSET_WRITE_DISPLAY) return {};
    return log.provenance_.make_own(write.owner), false;
  }

  Action watched_life() const {
    if (log.subgraphs_.is_inside()) log.subgraphs_.no_write_in_subgraph(write);
    if (!log.lives_.may_end_a_life(write)) return {};
    log.segment_.refuse(BreakKind::ObjectLifetime, kWatchesDeaths);
    return log.segment_.capture().flush({BreakKind::ObjectLifetime, kWatchesDeaths}), false;
  }

  Action opaque_container() const {
    if (stores_item && log.provenance_.existed(write.owner) && is_foreign(write.owner)) return true;
    return log.provenance_.arrays().knows(write.owner) ? Action(log.writes_to_array(write)) : std::nullopt;
  }

  // tensor[array, 0] = value
  Action item_of_tensor() const {
    if (!stores_item) return {};
    if (is_first_tangent(write.owner, write.value))
      log.segment_.capture().flush({BreakKind::AutogradFeature, "a tangent of a view"});
    if (!is_tensor(write.owner)) return {};
    for (PyObject* part : {write.key, write.value})
      if (log.provenance_.is_opaque(part) || log.provenance_.holds_foreign(part)) return true;
    return {};
  }

  Action item() const {
    log.had_key_ = is_item && PyDict_CheckExact(write.owner) && PyUnicode_CheckExact(write.key) &&
                   PyDict_Contains(write.owner, write.key) == 1;
    if (is_item && is_symbolic_number(write.owner)) return no_items_of(write.owner, write.key, write.value), false;
    if (is_item && PyDict_Check(write.owner)) {
      log.identities_.note_key(write.owner, write.key, true);
      // it may be compared with the keys
      if (log.provenance_.existed(write.owner) && !is_constant_value(write.key)) log.reads_.learn_keys(write.owner);
    }
    if (!is_item && write.kind != CRESSET_WRITE_IN_PLACE) return {};
    return log.will_write(write.owner), false;
  }

  Action attribute() const {
    if (!is_attribute) return false;
    if (is_symbolic_number(write.owner)) return no_attributes_of(write.owner, write.key), false;
    if (PyType_Check(write.owner)) log.will_write_class((PyTypeObject*)write.owner);
    if (write.value != nullptr && log.provenance_.is_opaque(write.owner)) return true;
    return is_tensor(write.owner) ? std::nullopt : Action(false);
  }

  Action attribute_of_tensor() const {
    const std::string_view name = utf8(write.key);
    if (name != "data" && is_own_tensor(write.owner)) return false;
    if (drops_gradient(log, write.owner, name, write.value)) return false;
    if (name != "data" && name != "grad" && name != "requires_grad" && !is_plain_argument()) return false;
    if (write.value != nullptr) return true;
    log.segment_.capture().flush(
        {BreakKind::SideEffect, "an assignment to the ." + std::string(name) + " of a tensor"});
    return false;
  }

  // p.grad = None, or del p.grad, for a tensor in state: an ordinary side effect.
  static bool drops_gradient(const WriteLog& log, PyObject* owner, std::string_view name, PyObject* value) {
    return (value == nullptr || value == Py_None) && name == "grad" && is_tensor(owner) &&
           log.provenance_.existed(owner) && !log.provenance_.is_argument_tensor(owner) && is_plain_tensor(owner);
  }

 private:
  bool is_plain_argument() const {
    if (!log.provenance_.is_argument_tensor(write.owner)) return false;
    return is_plain_tensor(write.owner) ||
           (has_plain_attributes(Py_TYPE(write.owner)) && _PyType_Lookup(Py_TYPE(write.owner), write.key) == nullptr);
  }
};

bool WriteLog::before_write(const CressetWrite& write) {
  if (asked_in_ == cresset_eval_current()) asked_in_ = nullptr;
  static constexpr Rules::Action (Rules::* kRules[])()
      const = {&Rules::display, &Rules::watched_life, &Rules::opaque_container,   &Rules::item_of_tensor,
               &Rules::item,    &Rules::attribute,    &Rules::attribute_of_tensor};
  const Rules rules{*this, write};
  return first_action(rules, kRules, false);
}

// If the write happens in a __hash__ or __eq__ which C code calls, the activation that called the C code; else nullptr.
static const CressetActivation* asking() {
  const CressetActivation* a = cresset_eval_current();
  while (a != nullptr && a->entered_from_c == 0) a = a->caller;
  if (a == nullptr || a->caller == nullptr) return nullptr;
  const std::string_view name = utf8(a->code->co_name);
  return name == "__hash__" || name == "__eq__" ? a->caller : nullptr;
}

// The write holds its values, which prevents reuse of their addresses.
void WriteLog::add_write(LoggedWrite write) {
  if (const CressetActivation* const by = asking()) asked_in_ = by;
  const auto mark = [&](PyObject* object) {
    ObjectRecord& record = provenance_.record(object);
    if (!record.known) record.made = true;
  };
  for (const PyRef& value : write.values) {
    mark(value.get());
    if (write.kind == LoggedWrite::Kind::Attribute || write.kind == LoggedWrite::Kind::Cell) continue;
    PyObject *container = value.get(), *key, *item;  // extend, update, +=: its items are written
    if (PyList_Check(container) || PyTuple_Check(container))
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(container); ++i) mark(PySequence_Fast_GET_ITEM(container, i));
    for (Py_ssize_t at = 0; PyDict_Check(container) && PyDict_Next(container, &at, &key, &item);) mark(item);
    if (!PyAnySet_Check(container)) continue;
    const PyRef items = checked(PySequence_List(container));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) mark(PyList_GET_ITEM(items.get(), i));
  }
  writes_.push_back(std::move(write));
}

// A replayed write would call __hash__ or __eq__ again, whose own side effects are replayed too. From the next capture
// on the write runs between two segments. callable: nullptr for a statement.
void WriteLog::no_effects_again(PyObject* callable) {
  if (asked_in_ == nullptr) return;
  leave_call_whole(asked_in_->code, asked_in_->instruction, callable);
  segment_.set_unseen();
  segment_.refuse(BreakKind::UntraceableFunction, kOpaqueCall);
  asked_in_ = nullptr;
}

void WriteLog::log_attribute(PyObject* owner, PyObject* name, PyObject* value) {
  if (is_own_tensor(owner) || (!provenance_.existed(owner) && is_wrapper(owner))) {  // reconstructed with the tensor
    if (value != nullptr && PyDict_Check(value)) provenance_.add_changed_unseen(value);
    return;
  }
  // A tensor in state is the same at each call, so its attributes are ordinary side effects.
  const bool in_state =
      provenance_.existed(owner) && !provenance_.is_argument_tensor(owner) && instance_dict(owner) != nullptr;
  const bool own_way = is_tensor(owner) && (!in_state || _PyType_Lookup(Py_TYPE(owner), name) != nullptr);
  if (own_way && !Rules::drops_gradient(*this, owner, utf8(name), value))
    return segment_.refuse(BreakKind::SideEffect, std::string("sets attribute ") + utf8(name) + " of a tensor");
  if (!provenance_.existed(owner)) {
    if (value != nullptr && provenance_.existed(value) && PyUnicode_CompareWithASCIIString(name, "__dict__") == 0)
      segment_.refuse(BreakKind::SideEffect, "gives an object of its own a dictionary that was there before");
    return reads_.meet_unknown(owner);
  }
  if (PyType_Check(owner) && is_kept_in_class(name)) return;
  if (PyType_Check(owner)) log_class((PyTypeObject*)owner, name);
  PyObject* dict = PyType_Check(owner)     ? type_dict((PyTypeObject*)owner)
                   : PyModule_Check(owner) ? PyModule_GetDict(owner)
                                           : instance_dict(owner);
  if (dict != nullptr) {
    reads_.mark_read(dict, name);
    provenance_.record(dict).keys_written = true;
    provenance_.keep(PyRef::borrow(dict));
  }
  reads_.mark_seen(owner, name);
  provenance_.keep(PyRef::borrow(name));
  LoggedWrite write{LoggedWrite::Kind::Attribute, PyRef::borrow(owner), PyRef::borrow(name), {}, {}, 0};
  if (value != nullptr) write.values.push_back(PyRef::borrow(value));
  add_write(std::move(write));
}

void WriteLog::after_write(const CressetWrite& write) {
  PyObject* owner = write.owner;
  if (write.kind == CRESSET_WRITE_ATTRIBUTE) return log_attribute(owner, write.key, write.value);
  if (write.kind == CRESSET_WRITE_GLOBAL) {
    reads_.learn(owner);
    provenance_.record(owner).keys_written = true;
  }
  if (!provenance_.existed(owner) && is_container(owner)) reads_.meet_unknown(owner);
  if (!provenance_.existed(owner) || is_tensor(owner)) return;
  LoggedWrite kept{LoggedWrite::Kind::Item, PyRef::borrow(owner), PyRef::borrow(write.key), {}, {}, write.operation};
  if (write.value != nullptr) kept.values.push_back(PyRef::borrow(write.value));
  if (write.kind == CRESSET_WRITE_ITEM && PyDict_Check(owner) && asks_program(write.key))
    if (PyObject* const key = key_there(owner, write.key, write.value)) kept.key = PyRef::borrow(key);
  if (write.kind == CRESSET_WRITE_CELL) kept.kind = LoggedWrite::Kind::Cell, kept.key = {};
  if (write.kind == CRESSET_WRITE_IN_PLACE) {
    if (!is_snapshot_container(owner)) {
      if (is_data_object(owner)) return;  // by evaluated methods of the program
      if (!is_symbolic_number(owner) && !is_constant_value(owner) && !PyTuple_Check(owner) && !is_numpy_scalar(owner))
        segment_.refuse(BreakKind::SideEffect,
                        std::string("changes an object of type ") + Py_TYPE(owner)->tp_name + " in place");
      return;
    }
    if (PyIter_Check(write.value))
      return segment_.refuse(BreakKind::SideEffect, "an iterator is added to a container in place");
    kept.kind = LoggedWrite::Kind::InPlace;
  } else if (write.kind != CRESSET_WRITE_CELL && !PyDict_Check(owner) && !PyList_Check(owner)) {
    return segment_.refuse(BreakKind::SideEffect,
                           std::string("writes an item of an object of type ") + Py_TYPE(owner)->tp_name);
  }
  if (write.kind == CRESSET_WRITE_CELL) provenance_.mark_whole(owner);
  if (asked_in_ == cresset_eval_current() && kept.kind == LoggedWrite::Kind::Item) no_effects_again(nullptr);
  if (write.key != nullptr) reads_.mark_read(owner, write.key);
  kept.had_key = write.kind == CRESSET_WRITE_ITEM && had_key_;
  provenance_.keep(PyRef::borrow(write.key));
  add_write(std::move(kept));
}

// Reading a missing key from an older defaultdict is a write.
void WriteLog::will_insert(PyObject* dict, PyObject* key) {
  static PyObject* const insert =
      PyDict_GetItemString(type_dict((PyTypeObject*)module_attribute("collections", "defaultdict")), "__missing__");
  static PyObject* const name = PyUnicode_InternFromString("__missing__");
  if (PyDict_CheckExact(dict) || !provenance_.existed(dict) || _PyType_Lookup(Py_TYPE(dict), name) != insert) return;
  if (value_under(dict, key) != nullptr) return;
  static PyObject* const factory = PyUnicode_InternFromString("default_factory");
  const PyRef maker = checked(PyObject_GenericGetAttr(dict, factory));
  if (!provenance_.are_slots_known(dict) && reads_.first(dict, factory))
    segment_.guards().member(dict, _PyType_Lookup(Py_TYPE(dict), factory), maker.get());
  reads_.learn(maker.get());
  if (maker.get() == Py_None) return;
  if (!provenance_.is_whole(dict)) reads_.read_key(dict, key, nullptr);
  const CressetWrite write{CRESSET_WRITE_ITEM, dict, key, nullptr, 0};
  before_write(write);
  inserting_.emplace_back(dict, key);
}

void WriteLog::use_context_variable(PyObject* variable, bool will_change) {
  PyObject* now = nullptr;
  if (PyContextVar_Get(variable, nullptr, &now) < 0) return PyErr_Clear();
  const PyRef value = PyRef::steal(now);
  if (variables_before_.count(variable) != 0) return;  // set by this segment
  if (reads_.first(variable, Py_None)) segment_.guards().member(variable, Py_None, value.get());
  reads_.learn(value.get());
  if (will_change) variables_before_.emplace(variable, value);
}

// Whether a write to a constant array is to run as a call, which ends the segment.
bool WriteLog::writes_to_array(const CressetWrite& write) {
  const ConstantArrays::Varies varies = what_varies(provenance_, addresses_);
  return write.kind == CRESSET_WRITE_ITEM && write.value != nullptr &&
         (!provenance_.arrays().is_same(write.key, varies) || !provenance_.arrays().is_same(write.value, varies));
}

// All other methods consume an iterator argument.
static bool stores_what_it_is_given(PyObject* method) {
  static const std::unordered_set<std::string_view> kNames = {"append",     "appendleft",  "insert", "add",
                                                              "setdefault", "__setitem__", "pop"};
  return kNames.count(utf8(method)) != 0;
}

// Whether the call removes an item which it added to a set. Guards against recursion do this with an address.
bool WriteLog::takes_back(const CCall& what, const CressetCall& call) {
  const std::string_view name = what.name;
  if (!PySet_Check(what.self) || (name != "discard" && name != "remove") || writes_.empty()) return false;
  if (what.first >= static_cast<size_t>(call.nargs)) return false;
  const std::pair added(what.self, call.args[what.first]);
  const auto known = std::find(added_.begin(), added_.end(), added);
  const auto last = std::find_if(writes_.rbegin(), writes_.rend(),
                                 [&](const LoggedWrite& write) { return write.owner.get() == what.self; });
  if (known == added_.end() || last == writes_.rend() || last->kind != LoggedWrite::Kind::Method ||
      last->values.size() != 1 || last->values[0].get() != added.second)
    return false;
  provenance_.keep(last->values[0]);
  added_.erase(known);
  writes_.erase(std::next(last).base());
  return true;
}

// Replay calls the C method and not an override in a subclass.
void WriteLog::log_method(const CCall& what, const CressetCall& call) {
  if (takes_back(what, call)) return;
  if (asked_in_ == cresset_eval_current()) no_effects_again(call.callable);
  PyObject* method = what.by_arguments ? call.callable : nullptr;
  const PyRef key = checked(PyUnicode_FromString(what.name));
  PyObject* bases = Py_TYPE(what.self)->tp_mro;
  for (Py_ssize_t i = 0; method == nullptr && i < PyTuple_GET_SIZE(bases); ++i) {
    auto* base = (PyTypeObject*)PyTuple_GET_ITEM(bases, i);
    PyObject* found = PyDict_GetItemWithError(type_dict(base), key.get());
    if (found != nullptr && (Py_TYPE(found) == &PyMethodDescr_Type || Py_TYPE(found) == &PyWrapperDescr_Type))
      method = found;
  }
  if (method == nullptr) return segment_.refuse(BreakKind::SideEffect, std::string("calls ") + what.name);
  LoggedWrite write{
      LoggedWrite::Kind::Method, PyRef::borrow(what.self), PyRef::borrow(method), {}, PyRef::borrow(call.kwnames), 0};
  const auto count = static_cast<size_t>(cresset_count_arguments(&call));
  for (size_t i = what.first; i < count; ++i) {
    // The rest of an iterator does not show its consumed items.
    if (PyIter_Check(call.args[i]) && !stores_what_it_is_given(key.get())) {
      without_symbols(PyRef::borrow(what.self));  // no write records them
      return segment_.refuse(BreakKind::SideEffect, std::string("calls ") + what.name + " with an iterator");
    }
    write.values.push_back(PyRef::borrow(call.args[i]));
  }
  add_write(std::move(write));
}

bool WriteLog::did_insert(PyObject* container, PyObject* key, PyObject* value) {
  if (inserting_.empty() || inserting_.back() != std::pair(container, key) || !is_container(container)) return false;
  subgraphs_.touch(container);
  inserting_.pop_back();
  after_write({CRESSET_WRITE_ITEM, container, key, value, 0});
  return true;
}

void WriteLog::check_context_variables() {
  for (const auto& [variable, before] : variables_before_) {
    PyObject* now = nullptr;
    if (PyContextVar_Get(variable, nullptr, &now) < 0) PyErr_Clear();
    if (PyRef::steal(now).get() == before.get()) continue;
    if (set_apart(variable)) segment_.set_unseen();  // the next call captures again
    segment_.refuse(BreakKind::SideEffect, "leaves a context variable changed");
  }
}

void WriteLog::begin() {
  for (auto& [variable, before] : variables_before_) provenance_.keep(std::move(before));
  variables_before_.clear();
  writes_.clear();
  added_.clear();
  inserting_.clear();
  asked_in_ = nullptr;
}

int WriteLog::visit_held(visitproc visit, void* arg) const {
  for (const LoggedWrite& write : writes_) {
    Py_VISIT(write.owner.get());
    Py_VISIT(write.key.get());
    for (const PyRef& value : write.values) Py_VISIT(value.get());
  }
  return 0;
}

void WriteLog::let_go() {
  variables_before_.clear();
  writes_.clear();
  added_.clear();
  inserting_.clear();
}

}  // namespace cresset::frontend
