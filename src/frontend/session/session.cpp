#include "frontend/session/session.h"

#include <structmember.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "bridge/capture/trace_tensor.h"
#include "frontend/cpython/code_origin.h"
#include "frontend/cpython/container_snapshot.h"
#include "frontend/cpython/dict_keys.h"
#include "frontend/cpython/kept_for_good.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/slots.h"
#include "frontend/feedback/opaque_calls.h"
#include "frontend/replay/reconstruction.h"
#include "frontend/session/rules.h"
#include "frontend/trace_rules/context_variables.h"
#include "frontend/trace_rules/special_cases.h"
#include "frontend/trace_rules/transforms.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/symbols.h"
#include "frontend/values/wrapper_tensors.h"
#include "frontend/variants/growing_containers.h"

namespace cresset::frontend {

void Session::refuse(BreakKind kind, std::string detail) {
  if (!refusal_.empty()) return;
  if (!capture_->closed()) capture_->set_location();
  BreakReason why(kind, std::move(detail));
  refusal_ = capture_->closed() ? std::move(why) : capture_->located(std::move(why));
}

void Session::learn_object(PyObject* object) {
  ObjectRecord& record = objects_[object];
  if (record.known || record.made) return;
  record.known = true;
  record.kept = PyRef::borrow(object);
  if (!is_plain_tensor(object)) meet(object);
}

// Records further guards for an object that is met for the first time.
void Session::meet(PyObject* object) {
  if (PyType_Check(object)) learn_class((PyTypeObject*)object);
  if (PyMethod_Check(object)) learn_function(object);
  // The items of a named tuple are read by name without a hook. Tuples of the call are excluded.
  if (PyTuple_Check(object) && !PyTuple_CheckExact(object) && !is_young(object))
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) learn(PyTuple_GET_ITEM(object, i));
  if (is_heap_type(Py_TYPE(object))) {
    facts_->classes().instance(object);
    learn((PyObject*)Py_TYPE(object));
  }
  for (const PyRef& inner : behind(object)) {
    learn(inner.get());
    if (PyTuple_Check(inner.get()) || PyDict_Check(inner.get())) read_whole(inner.get());  // of a partial function
    if (PyType_Check(inner.get())) facts_->classes().makes_instances((PyTypeObject*)inner.get());
  }
}

// An object which is guarded elsewhere, including its class.
void Session::learn_guarded(PyObject* object) {
  if (object == nullptr || is_constant_value(object)) return;
  ObjectRecord& record = objects_[object];
  if (!std::exchange(record.known, true)) record.kept = PyRef::borrow(object);
  record.dictionary_held = true;  // differs at each call: no guard may mention it
  if (!is_tensor(object)) learn((PyObject*)Py_TYPE(object));
}

bool Session::in_transform() const { return tangent_levels_ > 0 || inside_transform(); }

// Returns why the segment cannot end normally: changes that must not outlive it.
const BreakReason& Session::refusal() {
  called_instead_ = {};  // it holds its tensor
  for (const auto& [variable, before] : variables_before_) {
    PyObject* now = nullptr;
    if (PyContextVar_Get(variable, nullptr, &now) < 0) PyErr_Clear();
    if (PyRef::steal(now).get() == before.get()) continue;
    unseen_ = set_apart(variable) || unseen_;  // the next call captures again
    refuse(BreakKind::SideEffect, "leaves a context variable changed");
  }
  return refusal_;
}

void Session::begin(StateFacts& facts, bridge::Capture& capture) {
  facts_ = &facts;
  capture_ = &capture;
  begin_own_nodes();
  objects_.each([&](ObjectRecord& record) {
    if (record.known) kept_.push_back(std::move(record.kept));  // prevents reuse of addresses
  });
  objects_.clear();
  for (auto* table : {&argument_paths_, &contents_before_, &variables_before_}) {
    for (auto& [key, kept] : *table) kept_.push_back(std::move(kept));
    table->clear();
  }
  seen_.clear();
  keys_met_ = {};
  class_reads_.fill({});
  ignored_.each([&](const AddressPair& ignored, auto) {
    mark_read((PyObject*)ignored.a, (PyObject*)ignored.b);
    if (PyType_Check((PyObject*)ignored.a)) facts_->classes().elsewhere((PyTypeObject*)ignored.a, (PyObject*)ignored.b);
  });
  writes_.clear();
  may_be_unlooked_.clear();
  values_.clear();
  for (auto& [list, sum] : sums_) kept_.push_back(std::move(sum.sum));
  sums_.clear();
  symbols_placed_ = false;
  tangent_levels_ = 0;
  changed_unseen_.clear();
  added_.clear();
  inserting_.clear();
  generators_.clear();
  argument_tensors_.clear();
  opaque_.clear();
  addresses_.clear();
  arrays_.clear();
  forget_arguments();
  if (hooks_ != nullptr) hooks_->tells_all = 0, hooks_->told = next_piece();
  refusal_ = {};
  unseen_ = false;
  asked_in_ = nullptr;
}

PyObject* Session::ArgumentGenerator::get() const {
  if (!PyWeakref_CheckRefExact(reference.get())) return Py_REFCNT(reference.get()) > 1 ? reference.get() : nullptr;
  PyObject* object = PyWeakref_GetObject(reference.get());
  return object != Py_None ? object : nullptr;
}

static PyRef extended(PyObject* path, PyObject* step) {
  const PyRef one = checked(PyTuple_Pack(1, step));
  return checked(PySequence_Concat(path, one.get()));
}

// parts: the contents from frame_contents(), whose tuples are not objects of the program.
void Session::add_frame(const ArgSpec& spec, PyObject* parts, const std::function<PyRef(size_t)>& path_of) {
  for (size_t i = 0; i < spec.children.size(); ++i) {
    const PyRef path = path_of(i);
    PyObject* part = PyTuple_GET_ITEM(parts, static_cast<Py_ssize_t>(i));
    const ArgSpec& of_part = spec.children[i];
    if (i != 2 && i != 3) {
      add_argument(of_part, part, path.get());
      continue;
    }
    for (size_t j = 0; j < of_part.children.size(); ++j)
      add_argument(of_part.children[j], PyTuple_GET_ITEM(part, static_cast<Py_ssize_t>(j)),
                   extended(path.get(), checked(PyLong_FromSize_t(j)).get()).get());
  }
}

void Session::add_frames(const ArgSpec& spec, PyObject* contents) {
  for (size_t i = 0; i < spec.children.size(); ++i) {
    const PyRef path = checked(Py_BuildValue("(in)", 0, static_cast<Py_ssize_t>(i)));
    PyObject* frame = PyTuple_GET_ITEM(contents, static_cast<Py_ssize_t>(i));
    if (spec.children[i].kind != ArgSpec::Kind::Tuple)
      add_argument(spec.children[i], frame, path.get());
    else
      add_frame(spec.children[i], frame,
                [&](size_t part) { return extended(path.get(), checked(PyLong_FromSize_t(part)).get()); });
  }
}

// A path step to part i of an object's layout.
static PyRef step_into_part(size_t i) {
  return checked(PySlice_New(nullptr, checked(PyLong_FromSize_t(i)).get(), nullptr));
}

// The path of plain data that a segment may pass on uninspected; empty for other arguments, and for state.
static PyRef way_to_plain_data(const ArgSpec& spec, PyObject* path, bool is_state) {
  return !is_state && is_much_plain_data(spec) && leads_through_containers(path) ? PyRef::borrow(path) : PyRef();
}

void Session::add_argument(const ArgSpec& spec, PyObject* object, PyObject* path) {
  if (spec.kind == ArgSpec::Kind::Text) {
    argument_paths_.emplace(object, PyRef::borrow(path));
    values_.emplace_back(const_cast<ArgSpec*>(&spec), spec.first.get());
    return kept_.push_back(PyRef::borrow(object));
  }
  if (spec.kind == ArgSpec::Kind::Tensor) argument_tensors_.insert(object);
  note_value(spec, object);
  if (spec.kind == ArgSpec::Kind::Same && moves_on(take_apart(object).kind)) return;  // added before
  if (spec.kind == ArgSpec::Kind::Same && spec.type) argument_paths_.emplace(object, PyRef::borrow(path));
  // An iterator from an earlier segment advances. It is recreated in its current position and never counts as an older
  // object, even if it is found in state.
  const Anatomy anatomy = spec.kind == ArgSpec::Kind::Anatomy ? take_apart(object) : Anatomy{};
  const bool fate = moves_on(anatomy.kind) && has_fate(object, anatomy);
  // An iterator without a fate is not advanced if another object holds it, because a new object would replace it.
  const bool is_iterator = moves_on(anatomy.kind) && (fate || inside_ == 0);
  if (is_iterator) objects_[object].made = true;  // also holds for a later object at its address
  if (!is_iterator) spec.kind == ArgSpec::Kind::Identity ? learn(object) : learn_guarded(object);
  const bool own_value = spec.kind == ArgSpec::Kind::Value && is_numpy_scalar(object);  // differs at each call
  if (spec.kind == ArgSpec::Kind::Identity) seen_.insert({object, Py_Ellipsis});        // identity is guarded
  if (is_constant_value(object)) kept_.push_back(PyRef::borrow(object));                // prevents reuse of its address
  const bool is_opened = spec.kind == ArgSpec::Kind::List || spec.kind == ArgSpec::Kind::Dict ||
                         spec.kind == ArgSpec::Kind::Anatomy || spec.kind == ArgSpec::Kind::Opaque;
  const bool is_grown = spec.kind == ArgSpec::Kind::Opaque && PyList_CheckExact(object);
  const bool is_state = PyLong_AsLong(PyTuple_GET_ITEM(path, 0)) == kStateRoot;
  if (is_grown && !is_state) close_argument(object);
  if (PyRef way = way_to_plain_data(spec, path, is_state); is_opened && (is_state || is_grown || way))
    may_be_unlooked_.push_back({const_cast<ArgSpec*>(&spec), object, std::move(way)});
  if (spec.kind == ArgSpec::Kind::Opaque && (can_be_opaque(object) || PyGen_CheckExact(object))) opaque_.insert(object);
  if (spec.kind == ArgSpec::Kind::Opaque || own_value) argument_paths_.emplace(object, PyRef::borrow(path));
  const bool is_object = (is_opened && spec.kind != ArgSpec::Kind::Opaque) || spec.kind == ArgSpec::Kind::Registered ||
                         (spec.kind == ArgSpec::Kind::Tuple && !PyTuple_CheckExact(object));  // () is a singleton
  if (spec.children.empty() && !is_object) return;
  if (!is_iterator) {
    argument_paths_.emplace(object, PyRef::borrow(path));
    mark_whole(object);
  }
  // Tuples in an iterator's decomposed state come from `take_apart()` and have no other holder.
  const bool is_told = std::exchange(is_told_, false) && PyTuple_CheckExact(object);
  if (is_iterator && makes_parts(anatomy.kind)) kept_.insert(kept_.end(), anatomy.parts.begin(), anatomy.parts.end());
  const bool holds = !is_iterator && !is_told;
  const auto child = [&](size_t i, PyObject* key, PyObject* value) {
    inside_ += holds;
    is_told_ = !holds && PyTuple_CheckExact(value);
    add_argument(spec.children[i], value, extended(path, key).get());
    is_told_ = false;
    inside_ -= holds;
  };
  if (spec.kind == ArgSpec::Kind::Dict) {
    PyObject *key, *value;
    EntriesInOrder entries(object);
    for (size_t i = 0; entries.next(&key, &value); ++i) child(i, key, value);
  } else if (spec.kind == ArgSpec::Kind::Anatomy) {
    const bool attributes = has_attributes(spec.anatomy.kind) || spec.anatomy.kind == Anatomy::Kind::Wrapper;
    if (PyObject* dict = attributes ? instance_dict(object) : nullptr) {
      learn(dict);
      mark_whole(dict);
      argument_paths_.emplace(dict, extended(path, checked(PySlice_New(nullptr, nullptr, nullptr)).get()));
    }
    const bool is_generator = anatomy.kind == Anatomy::Kind::Generator;
    if (fate)
      generators_.push_back(
          {is_generator ? checked(PyWeakref_NewRef(object, nullptr)) : PyRef::borrow(object), PyRef::borrow(path)});
    if (is_generator) {
      const auto outside = std::exchange(inside_, 0);  // its frame owns these objects, independent of its own holder
      if (!anatomy.parts.empty())
        add_frame(spec, tuple_of(anatomy.parts).get(),
                  [&](size_t i) { return extended(path, step_into_part(i).get()); });
      inside_ = outside;
      return;
    }
    for (size_t i = 0; i < spec.children.size() && i < anatomy.parts.size(); ++i)  // count(symbol) also has a step
      child(i, step_into_part(i).get(), anatomy.parts[i].get());
    for (const PyRef& part : anatomy.parts)  // C code may consume the rest without a hook
      if (moves_on(anatomy.kind)) read_whole(part.get());
  } else if (PyTuple_Check(object) || PyList_Check(object)) {
    for (size_t i = 0; i < spec.children.size(); ++i)
      child(i, checked(PyLong_FromSize_t(i)).get(), PySequence_Fast_GET_ITEM(object, static_cast<Py_ssize_t>(i)));
  }
}

void Session::ignore(PyObject* dict_or_class, const char* key) {
  PyObject* const name = kept_.emplace_back(checked(PyUnicode_InternFromString(key))).get();
  ignored_.insert({dict_or_class, name});
  mark_read(dict_or_class, name);
  if (facts_ != nullptr && PyType_Check(dict_or_class)) facts_->classes().elsewhere((PyTypeObject*)dict_or_class, name);
}

bool Session::is_closed(PyObject* object) const { return is_foreign(object) || is_opaque(object) || has_grown(object); }

PyObject* Session::argument_path(PyObject* object) const {
  const auto found = argument_paths_.find(object);
  return found != argument_paths_.end() ? found->second.get() : nullptr;
}

// ---- Writes

void Session::will_write(PyObject* container) {
  if (!existed(container) || !is_snapshot_container(container) || contents_before_.count(container) != 0) return;
  if (objects_.find(container)->whole) return;  // the earlier contents are guarded already
  PyRef copy = PyDict_Check(container)     ? copy_of_dict(container)
               : PyAnySet_Check(container) ? checked(PySet_New(container))
                                           : checked(PySequence_List(items_of(container).get()));
  contents_before_.emplace(container, std::move(copy));
}

// A list that an earlier segment began to fill for a display or comprehension. It has no other holder, so each segment
// creates its own list.
void Session::make_own(PyObject* display) {
  if (!existed(display)) return;
  ObjectRecord& record = objects_[display];
  record.looked = true;
  if (has_grown(display))  // contents uninspected: serve no later call, and inspect them at the next capture
    return leave_growing(display);
  kept_.push_back(std::move(record.kept));
  record.known = record.whole = false;
  record.made = true;
  argument_paths_.erase(display);
}

// The rules of writes. A rule notes the write, or says whether the operation runs between two segments.
struct Session::WriteRules {
  using Action = std::optional<bool>;

  Session& session;
  const CressetWrite& write;
  const bool is_attribute = write.kind == CRESSET_WRITE_ATTRIBUTE, is_item = write.kind == CRESSET_WRITE_ITEM;
  const bool stores_item = is_item && write.value != nullptr;

  Action display() const {
    if (write.kind != CRESSET_WRITE_DISPLAY) return {};
    return session.make_own(write.owner), false;
  }

  Action watched_life() const {
    if (!session.outer_.empty()) session.no_write_in_part(write);
    if (!session.may_end_a_life(write)) return {};
    session.refuse(BreakKind::ObjectLifetime, kWatchesDeaths);
    return session.capture_->flush({BreakKind::ObjectLifetime, kWatchesDeaths}), false;
  }

  Action opaque_container() const {
    if (stores_item && session.existed(write.owner) && is_foreign(write.owner)) return true;
    return session.arrays_.knows(write.owner) ? Action(session.writes_to_array(write)) : std::nullopt;
  }

  // tensor[array, 0] = value
  Action item_of_tensor() const {
    if (!stores_item) return {};
    if (is_first_tangent(write.owner, write.value))
      session.capture_->flush({BreakKind::AutogradFeature, "a tangent of a view"});
    if (!is_tensor(write.owner)) return {};
    for (PyObject* part : {write.key, write.value})
      if (session.is_opaque(part) || session.holds_foreign(part)) return true;
    return {};
  }

  Action item() const {
    session.had_key_ = is_item && PyDict_CheckExact(write.owner) && PyUnicode_CheckExact(write.key) &&
                       PyDict_Contains(write.owner, write.key) == 1;
    if (is_item && is_symbolic_number(write.owner)) return no_items_of(write.owner, write.key, write.value), false;
    if (is_item && PyDict_Check(write.owner)) {
      session.note_key(write.owner, write.key, true);
      // it may be compared with the keys
      if (session.existed(write.owner) && !is_constant_value(write.key)) session.learn_keys(write.owner);
    }
    if (!is_item && write.kind != CRESSET_WRITE_IN_PLACE) return {};
    return session.will_write(write.owner), false;
  }

  Action attribute() const {
    if (!is_attribute) return false;
    if (is_symbolic_number(write.owner)) return no_attributes_of(write.owner, write.key), false;
    if (PyType_Check(write.owner)) session.will_write_class((PyTypeObject*)write.owner);
    if (write.value != nullptr && session.is_opaque(write.owner)) return true;
    return is_tensor(write.owner) ? std::nullopt : Action(false);
  }

  Action attribute_of_tensor() const {
    const std::string_view name = utf8(write.key);
    if (name != "data" && is_own_tensor(write.owner)) return false;
    if (drops_gradient(session, write.owner, name, write.value)) return false;
    if (name != "data" && name != "grad" && name != "requires_grad" && !is_plain_argument()) return false;
    if (write.value != nullptr) return true;
    session.capture_->flush({BreakKind::SideEffect, "an assignment to the ." + std::string(name) + " of a tensor"});
    return false;
  }

  // p.grad = None, or del p.grad, for a tensor in state: an ordinary side effect.
  static bool drops_gradient(const Session& session, PyObject* owner, std::string_view name, PyObject* value) {
    return (value == nullptr || value == Py_None) && name == "grad" && is_tensor(owner) && session.existed(owner) &&
           session.argument_tensors_.count(owner) == 0 && is_plain_tensor(owner);
  }

 private:
  bool is_plain_argument() const {
    if (session.argument_tensors_.count(write.owner) == 0) return false;
    return is_plain_tensor(write.owner) ||
           (has_plain_attributes(Py_TYPE(write.owner)) && _PyType_Lookup(Py_TYPE(write.owner), write.key) == nullptr);
  }
};

bool Session::before_write(const CressetWrite& write) {
  if (asked_in_ == cresset_eval_current()) asked_in_ = nullptr;
  static constexpr WriteRules::Action (WriteRules::* kRules[])() const = {
      &WriteRules::display, &WriteRules::watched_life, &WriteRules::opaque_container,   &WriteRules::item_of_tensor,
      &WriteRules::item,    &WriteRules::attribute,    &WriteRules::attribute_of_tensor};
  const WriteRules rules{*this, write};
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
void Session::add_write(Write write) {
  if (const CressetActivation* const by = asking()) asked_in_ = by;
  const auto mark = [&](PyObject* object) {
    ObjectRecord& record = objects_[object];
    if (!record.known) record.made = true;
  };
  for (const PyRef& value : write.values) {
    mark(value.get());
    if (write.kind == Write::Kind::Attribute || write.kind == Write::Kind::Cell) continue;
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
void Session::no_effects_again(PyObject* callable) {
  if (asked_in_ == nullptr) return;
  leave_call_whole(asked_in_->code, asked_in_->instruction, callable);
  unseen_ = true;
  refuse(BreakKind::UntraceableFunction, kLeftWhole);
  asked_in_ = nullptr;
}

void Session::log_attribute(PyObject* owner, PyObject* name, PyObject* value) {
  if (is_own_tensor(owner) || (!existed(owner) && is_wrapper(owner))) {  // reconstructed with the tensor
    if (value != nullptr && PyDict_Check(value)) changed_unseen_.push_back(PyRef::borrow(value));
    return;
  }
  // A tensor in state is the same at each call, so its attributes are ordinary side effects.
  const bool in_state = existed(owner) && argument_tensors_.count(owner) == 0 && instance_dict(owner) != nullptr;
  const bool own_way = is_tensor(owner) && (!in_state || _PyType_Lookup(Py_TYPE(owner), name) != nullptr);
  if (own_way && !WriteRules::drops_gradient(*this, owner, utf8(name), value))
    return refuse(BreakKind::SideEffect, std::string("sets attribute ") + utf8(name) + " of a tensor");
  if (!existed(owner)) {
    if (value != nullptr && existed(value) && PyUnicode_CompareWithASCIIString(name, "__dict__") == 0)
      refuse(BreakKind::SideEffect, "gives an object of its own a dictionary that was there before");
    return meet_unknown(owner);
  }
  if (PyType_Check(owner) && is_kept_in_class(name)) return;
  if (PyType_Check(owner)) log_class((PyTypeObject*)owner, name);
  PyObject* dict = PyType_Check(owner)     ? type_dict((PyTypeObject*)owner)
                   : PyModule_Check(owner) ? PyModule_GetDict(owner)
                                           : instance_dict(owner);
  if (dict != nullptr) {
    mark_read(dict, name);
    objects_[dict].keys_written = true;
    kept_.push_back(PyRef::borrow(dict));
  }
  seen_.insert({owner, name});
  kept_.push_back(PyRef::borrow(name));
  Write write{Write::Kind::Attribute, PyRef::borrow(owner), PyRef::borrow(name), {}, {}, 0};
  if (value != nullptr) write.values.push_back(PyRef::borrow(value));
  add_write(std::move(write));
}

void Session::after_write(const CressetWrite& write) {
  PyObject* owner = write.owner;
  if (write.kind == CRESSET_WRITE_ATTRIBUTE) return log_attribute(owner, write.key, write.value);
  if (write.kind == CRESSET_WRITE_GLOBAL) {
    learn(owner);
    objects_[owner].keys_written = true;
  }
  if (!existed(owner) && is_container(owner)) meet_unknown(owner);
  if (!existed(owner) || is_tensor(owner)) return;
  Write kept{Write::Kind::Item, PyRef::borrow(owner), PyRef::borrow(write.key), {}, {}, write.operation};
  if (write.value != nullptr) kept.values.push_back(PyRef::borrow(write.value));
  if (write.kind == CRESSET_WRITE_ITEM && PyDict_Check(owner) && asks_program(write.key))
    if (PyObject* const key = key_there(owner, write.key, write.value)) kept.key = PyRef::borrow(key);
  if (write.kind == CRESSET_WRITE_CELL) kept.kind = Write::Kind::Cell, kept.key = {};
  if (write.kind == CRESSET_WRITE_IN_PLACE) {
    if (!is_snapshot_container(owner)) {
      if (is_data_object(owner)) return;  // by evaluated methods of the program
      if (!is_symbolic_number(owner) && !is_constant_value(owner) && !PyTuple_Check(owner) && !is_numpy_scalar(owner))
        refuse(BreakKind::SideEffect,
               std::string("changes an object of type ") + Py_TYPE(owner)->tp_name + " in place");
      return;
    }
    if (PyIter_Check(write.value)) return refuse(BreakKind::SideEffect, "an iterator is added to a container in place");
    kept.kind = Write::Kind::InPlace;
  } else if (write.kind != CRESSET_WRITE_CELL && !PyDict_Check(owner) && !PyList_Check(owner)) {
    return refuse(BreakKind::SideEffect, std::string("writes an item of an object of type ") + Py_TYPE(owner)->tp_name);
  }
  if (write.kind == CRESSET_WRITE_CELL) mark_whole(owner);
  if (asked_in_ == cresset_eval_current() && kept.kind == Write::Kind::Item) no_effects_again(nullptr);
  if (write.key != nullptr) mark_read(owner, write.key);
  kept.had_key = write.kind == CRESSET_WRITE_ITEM && had_key_;
  kept_.push_back(PyRef::borrow(write.key));
  add_write(std::move(kept));
}

}  // namespace cresset::frontend
