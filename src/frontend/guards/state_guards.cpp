#include "frontend/guards/state_guards.h"

#include <structmember.h>
#include <torch/csrc/Device.h>

#include <algorithm>
#include <cmath>

#include "frontend/cpython/containers.h"
#include "frontend/cpython/dict_keys.h"
#include "frontend/cpython/object_repr.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/slots.h"
#include "frontend/values/object_layout.h"

namespace cresset::frontend {
namespace {

// Reads a member by C code alone. Empty when it is missing.
PyRef member_of(PyObject* owner, PyObject* by) {
  PyObject* got = nullptr;
  if (PyWeakref_CheckRef(owner) && by == Py_None)  // the address of the target, which must not be kept alive
    got = PyLong_FromVoidPtr(PyWeakref_GET_OBJECT(owner));
  else if (PyTuple_CheckExact(by))
    got = PyObject_CallObject(owner, by);
  else if (by == Py_None)
    PyContextVar_Get(owner, nullptr, &got);
  else if (PyUnicode_Check(by))
    got = Py_TYPE(owner)->tp_getattro(owner, by);
  else
    got = Py_TYPE(by)->tp_descr_get(by, owner, (PyObject*)Py_TYPE(owner));
  if (got == nullptr) PyErr_Clear();
  return PyRef::steal(got);
}

// The place in the object where the descriptor's value is stored; nullptr if it is not a single reference.
PyObject* const* slot_of(PyObject* owner, PyObject* by) {
  if (!Py_IS_TYPE(by, &PyMemberDescr_Type)) return nullptr;
  const PyMemberDef* member = ((PyMemberDescrObject*)by)->d_member;
  if (member->type != T_OBJECT_EX && member->type != T_OBJECT) return nullptr;
  return (PyObject* const*)((const char*)owner + member->offset);
}

// A hash of the number types in a set; 0 without numbers. Independent of the order, since equal sets may differ in it.
size_t kinds_of_numbers(PyObject* set) {
  size_t kinds = 0;
  const PyRef items = checked(PySet_Type.tp_iter(set));
  while (const PyRef item = PyRef::steal(PyIter_Next(items.get()))) {
    PyObject* number = item.get();
    if (!PyLong_Check(number) && !PyFloat_Check(number) && !PyComplex_Check(number)) continue;
    const size_t kind = reinterpret_cast<size_t>(Py_TYPE(number)) ^ static_cast<size_t>(PyObject_Hash(number));
    kinds += kind * 0x9E3779B97F4A7C15ULL | 1;
  }
  return kinds;
}

bool same_or_absent(PyObject* expected, PyObject* got) {
  if (expected == got) return true;
  return expected != nullptr && got != nullptr && same_constant(expected, got);
}

// list: a list or a deque. No Python code runs.
bool same_items(PyObject* tuple, PyObject* list) {
  const PyRef items = PyList_Check(list) ? PyRef() : items_of(list);
  PyObject* const sequence = items ? items.get() : list;
  const Py_ssize_t count = PyTuple_GET_SIZE(tuple);
  if (count != PySequence_Fast_GET_SIZE(sequence)) return false;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!same_constant(PyTuple_GET_ITEM(tuple, i), PySequence_Fast_GET_ITEM(sequence, i))) return false;
  return true;
}

std::string change_of_items(PyObject* then, PyObject* list) {
  const Py_ssize_t before = PyTuple_GET_SIZE(then), now = PyList_Check(list) ? PyList_GET_SIZE(list) : before;
  if (before != now) return ": expected " + std::to_string(before) + " items, got " + std::to_string(now);
  for (Py_ssize_t i = 0; PyList_Check(list) && i < now; ++i) {
    PyObject *const old = PyTuple_GET_ITEM(then, i), *const got = PyList_GET_ITEM(list, i);
    if (!same_or_absent(old, got))
      return "[" + std::to_string(i) + "]: expected " + value_text(old) + ", got " + value_text(got);
  }
  return ": its items changed";
}

}  // namespace

// ---- Inputs

PyObject* StateGuards::Source::len() {
  static PyObject* const function = module_attribute("builtins", "len");
  return function;
}

PyObject* StateGuards::Source::length() const {
  length_ = checked(PyLong_FromSsize_t(PyObject_Size(container.get())));
  return length_.get();
}

bool StateGuards::is_one_of_inputs(PyObject* container, PyObject* key) const {
  return std::any_of(inputs_.begin(), inputs_.end(), [&](const Input& input) {
    return input.source.container.get() == container && (key == nullptr || same_constant(input.source.key.get(), key));
  });
}

void StateGuards::add_input(Source source, ArgSpec spec) {
  PyTypeObject* const type = Py_TYPE(source.held());
  if (PyType_Check(source.container.get())) classes_.elsewhere((PyTypeObject*)source.container.get(), source.key.get());
  inputs_.push_back({std::move(source), std::move(spec), type});
}

bool StateGuards::gather(CallLeaves& leaves, std::string* why) const {
  for (const Input& input : inputs_) {
    const PyRef now = PyRef::borrow(input.source.held());
    if (!now || Py_TYPE(now.get()) != input.type)
      return miss(why, input.source.container.get(), input.source.key.get(), (PyObject*)input.type, now.get());
    leaves.state.push_back(now);
    if (!match(input.spec, now.get(), leaves, why)) return false;
  }
  for (const auto& [position, tensor] : tied_leaves_) {
    if (leaves.tensors[position].is_same(tensor_of(tensor.get()))) continue;
    if (why != nullptr) *why = "expected a tensor that the program's state holds too";
    return false;
  }
  if (!lacks_absent(leaves, why)) return false;
  if (!ended_ || (strangers_fit(leaves) && containers_fit(leaves))) return true;
  if (why != nullptr) *why = "expected an argument that the program's state holds too, or one that it does not hold";
  return false;
}

bool StateGuards::lacks_absent(const CallLeaves& leaves, std::string* why) const {
  for (const auto& [position, name] : absent_) {
    PyObject* const dict = instance_dict(python_tensor(leaves.tensors[position]).get());
    if (dict == nullptr || PyDict_GetItem(dict, name.get()) == nullptr) continue;
    if (why != nullptr) *why = std::string("expected a tensor without attribute ") + utf8(name.get());
    return false;
  }
  return true;
}

// Only for objects with identity comparison: no code of the program runs.
static bool holds_object(PyObject* container, PyObject* object) {
  if (PyDict_Check(container) || PyAnySet_Check(container)) {
    const int has = PyDict_Check(container) ? PyDict_Contains(container, object) : PySet_Contains(container, object);
    if (has < 0) PyErr_Clear();
    return has != 0;
  }
  const PyRef items = items_of(container);
  PyObject** const first = PySequence_Fast_ITEMS(items.get());
  return std::find(first, first + PySequence_Fast_GET_SIZE(items.get()), object) !=
         first + PySequence_Fast_GET_SIZE(items.get());
}

static bool holds_reference(PyObject* container, PyObject* object) {
  const PyRef reference = PyRef::steal(PyWeakref_NewRef(object, nullptr));
  if (!reference) PyErr_Clear();
  return reference && holds_object(container, reference.get());
}

// Compares integers alone in lists and tuples, whose other items may have an `__eq__` of the program. Dictionaries and
// sets compare keys of the same hash.
static bool holds_address(PyObject* container, PyObject* object) {
  const auto is_address = [&](PyObject* item) { return PyLong_CheckExact(item) && PyLong_AsVoidPtr(item) == object; };
  if (PyList_Check(container) || PyTuple_Check(container)) {
    PyObject** const items = PySequence_Fast_ITEMS(container);
    const bool found = std::any_of(items, items + PySequence_Fast_GET_SIZE(container), is_address);
    if (PyErr_Occurred() != nullptr) PyErr_Clear();  // an integer that is no address
    return found;
  }
  const PyRef address = checked(PyLong_FromVoidPtr(object));
  const int has = PyDict_Check(container) ? PyDict_Contains(container, address.get())
                                          : PySequence_Contains(container, address.get());
  if (has < 0) PyErr_Clear();
  return has != 0;
}

static bool holds_in_some_way(PyObject* container, PyObject* object, StateGuards::HeldBy by) {
  switch (by) {
    case StateGuards::HeldBy::Identity:
      return holds_object(container, object);
    case StateGuards::HeldBy::Reference:
      return holds_reference(container, object);
    case StateGuards::HeldBy::Address:
      return holds_address(container, object);
  }
  return true;
}

// For each tensor and container, the index of its first occurrence.
static std::vector<uint32_t> first_places(const CallLeaves& leaves) {
  std::vector<const void*> all;
  for (const at::Tensor& tensor : leaves.tensors) all.push_back(tensor.unsafeGetTensorImpl());
  all.insert(all.end(), leaves.containers.begin(), leaves.containers.end());
  ska::flat_hash_map<const void*, uint32_t> places;
  std::vector<uint32_t> out;
  for (const void* one : all) out.push_back(places.emplace(one, static_cast<uint32_t>(out.size())).first->second);
  return out;
}

bool StateGuards::strangers_fit(const CallLeaves& leaves) const {
  if (!places_.empty() && first_places(leaves) != places_) return false;
  return std::none_of(strangers_.begin(), strangers_.end(), [&](const Stranger& s) {
    if (!s.is_tensor && s.position >= leaves.containers.size()) return false;
    const PyRef object =
        s.is_tensor ? python_tensor(leaves.tensors[s.position]) : PyRef::borrow(leaves.containers[s.position]);
    return holds_in_some_way(s.container.get(), object.get(), s.by);
  });
}

void StateGuards::stranger(PyObject* object, PyObject* container, HeldBy by) {
  const auto leaf = leaf_of_.find(object);
  const auto one = container_of_.find(object);
  const bool is_leaf = leaf != leaf_of_.end();
  if (is_leaf || one != container_of_.end())
    strangers_.push_back({is_leaf, by, is_leaf ? leaf->second : one->second, PyRef::borrow(container)});
}

// Aliasing must be the same, because a write to an argument would be visible in state.
bool StateGuards::containers_fit(const CallLeaves& leaves) const {
  for (size_t i = 0; i < leaves.containers.size(); ++i) {
    PyObject* const tied = i < tied_containers_.size() ? tied_containers_[i].get() : nullptr;
    PyObject* const given = leaves.containers[i];
    if (tied != nullptr ? given != tied : identities_.count(given) != 0) return false;
  }
  return true;
}

void StateGuards::specialize_floats(const CallLeaves& leaves, uint64_t specialized, size_t& next) {
  for (Input& input : inputs_) frontend::specialize_floats(input.spec, leaves, specialized, next);
}

void StateGuards::end_capture() {
  for (Input& input : inputs_) input.given = {};
  leaf_of_.clear();
  first_places_.clear();
  container_of_.clear();
  if (std::exchange(ended_, true)) return;
  const auto add = [&](const PyRef& value) {
    PyObject* const object = value.get();
    if (object == nullptr || is_constant_value(object) || is_tensor(object) || PyType_Check(object) ||
        PyModule_Check(object) || PyFunction_Check(object))
      return;
    identities_.insert(object);
  };
  for (const Dict& guard : dicts_)
    for (const auto& [_, value] : guard.items) add(value);
  for (const List& guard : lists_)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(guard.contents.get()); ++i)
      add(PyRef::borrow(PyTuple_GET_ITEM(guard.contents.get(), i)));
  for (const Cell& guard : cells_) add(guard.value);
  for (const Member& guard : members_) add(guard.value);
}

void StateGuards::absent(PyObject* tensor, PyObject* name) {
  const auto leaf = leaf_of_.find(tensor);
  if (leaf == leaf_of_.end()) return;
  const auto same = [&](const auto& known) { return known.first == leaf->second && known.second.get() == name; };
  if (std::none_of(absent_.begin(), absent_.end(), same)) absent_.emplace_back(leaf->second, PyRef::borrow(name));
}

void StateGuards::know(const CallLeaves& leaves) {
  first_places_ = first_places(leaves);
  for (size_t i = 0; i < leaves.tensors.size(); ++i)
    leaf_of_.emplace(python_tensor(leaves.tensors[i]).get(), i);  // kept alive by the leaves
  for (size_t i = 0; i < leaves.containers.size(); ++i) container_of_.emplace(leaves.containers[i], i);
}

bool StateGuards::is_tied(PyObject* tensor) const {
  return std::any_of(tied_leaves_.begin(), tied_leaves_.end(),
                     [&](const auto& tied) { return tied.second.get() == tensor; });
}

void StateGuards::tie_object(PyObject* value) {
  for (Py_ssize_t i = 0; PyTuple_CheckExact(value) && i < PyTuple_GET_SIZE(value); ++i) tie(PyTuple_GET_ITEM(value, i));
  const auto leaf = leaf_of_.find(value);
  const auto is_known = [&](const auto& known) { return known.first == leaf->second; };
  if (leaf != leaf_of_.end() && std::none_of(tied_leaves_.begin(), tied_leaves_.end(), is_known))
    tied_leaves_.emplace_back(leaf->second, PyRef::borrow(value));
  const auto container = container_of_.find(value);
  if (container == container_of_.end()) return;
  tied_containers_.resize(std::max(tied_containers_.size(), container->second + 1));
  tied_containers_[container->second] = PyRef::borrow(value);
}

// If an argument's part lies in the place, its symbol is already there.
void StateGuards::place(const std::vector<PyRef>& held, Symbols& symbols) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    PyRef given = with_symbols(inputs_[i].spec, held[i].get(), symbols);
    if (inputs_[i].source.is_length()) {
      inputs_[i].length = PyLong_AsSsize_t(held[i].get());
      inputs_[i].given = std::move(given);
      continue;
    }
    PyObject* const now = inputs_[i].source.held();
    if (given.get() != held[i].get() && now == held[i].get()) symbols.placed.put(inputs_[i].source, given);
    inputs_[i].given = std::move(given);
  }
}

namespace {

// Whether a program with this place as an input could serve both values.
bool varied(PyObject* then, PyObject* now) {
  if (then == now || Py_TYPE(then) != Py_TYPE(now)) return is_plain_tensor(then) && is_plain_tensor(now) && then != now;
  if (is_plain_tensor(now)) return true;
  if (PyLong_CheckExact(now) || PyFloat_CheckExact(now)) return !same_constant(then, now);
  if (is_callable_by_parts(now)) return same_form(decompose(then), decompose(now));
  if (!PyTuple_Check(now)) return is_structure(now) || can_be_opaque(now);
  if (!is_structure(now) || PyTuple_GET_SIZE(then) != PyTuple_GET_SIZE(now)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(now); ++i)
    if (varied(PyTuple_GET_ITEM(then, i), PyTuple_GET_ITEM(now, i))) return true;
  return false;
}

// Collects a replaced object and its parts, which guards may mention.
void collect_replaced(PyObject* object, ska::flat_hash_set<PyObject*>& out, int depth = 0) {
  constexpr int kDeepest = 6;
  if (depth > kDeepest || is_constant_value(object) || is_tensor(object) || !is_structure(object)) return;
  if (!out.insert(object).second) return;
  if (PyObject* const dict = PyTuple_Check(object) ? nullptr : instance_dict(object)) out.insert(dict);
  for (const PyRef& part : parts_of_structure(object)) collect_replaced(part.get(), out, depth + 1);
}

}  // namespace

// Functions in classes and modules are guarded by identity.
static bool is_namespace(PyObject* dict) {
  return PyDict_CheckExact(dict) && PyDict_GetItemString(dict, "__name__") != nullptr;
}

// Whether a dictionary lookup of the key runs no code of the program; includes (3, torch.float32).
static bool is_plain_key(PyObject* key) {
  if (!PyTuple_CheckExact(key)) return is_constant_value(key) || is_equal_by_identity(key) || is_hashed_by_program(key);
  PyObject** const items = PySequence_Fast_ITEMS(key);
  return std::all_of(items, items + PyTuple_GET_SIZE(key), is_plain_key);
}

bool StateGuards::collect_varied(const Stays& stays, const Varied& tell) const {
  struct Candidate {
    Source source;
    PyRef then, now;
  };
  std::vector<Candidate> candidates;
  ska::flat_hash_set<PyObject*> replaced;
  bool is_outdated = false;
  const auto look = [&](Source source, PyObject* then) {
    PyObject* const now = source.held();  // kept alive by the source
    if (now == nullptr || then == nullptr || !varied(then, now)) return;
    if (is_callable_by_parts(now) && (PyType_Check(source.container.get()) || is_namespace(source.container.get())))
      return;
    collect_replaced(then, replaced);
    is_outdated = true;
    if (is_structure(now) && stays(source, then, now)) return;
    candidates.push_back({std::move(source), PyRef::borrow(then), PyRef::borrow(now)});
  };
  for (const Dict& guard : dicts_)
    for (const auto& [key, value] : guard.items)
      if (is_plain_key(key.get())) look({{guard.dict, key}}, value.get());
  for (const List& guard : lists_) {
    if (!PyList_Check(guard.list.get()) && !is_deque(guard.list.get())) continue;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(guard.contents.get()); ++i)
      look({{guard.list, checked(PyLong_FromSsize_t(i))}}, PyTuple_GET_ITEM(guard.contents.get(), i));
  }
  for (const Length& guard : lengths_)
    look({{guard.container, PyRef::borrow(Source::len())}}, checked(PyLong_FromSsize_t(guard.count)).get());
  for (const Cell& guard : cells_) look({{guard.cell, {}}}, guard.value.get());
  for (const Member& guard : members_)
    if (is_place(guard.descriptor.get()) || is_thread_local(guard.owner.get()))
      look({{guard.owner, guard.descriptor}}, guard.value.get());
  classes_.changed([&](PyObject* type, PyObject* name, PyObject* then, PyObject*) {
    look({{PyRef::borrow(type), PyRef::borrow(name)}}, then);
  });
  for (Candidate& c : candidates)
    if (replaced.count(c.source.container.get()) == 0) tell(std::move(c.source), c.then.get(), c.now.get());
  return is_outdated;
}

// Dictionaries with string keys are excluded, since each new string has its own program anyway.
static bool has_int_keys(PyObject* dict) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  if (!PyDict_CheckExact(dict)) return false;
  while (PyDict_Next(dict, &position, &key, &value))
    if (!PyLong_CheckExact(key)) return false;
  return true;
}

void StateGuards::each_growing(const std::function<void(PyObject*, bool)>& tell) const {
  for (const List& guard : lists_) {
    if (!PyList_CheckExact(guard.list.get()) && !is_deque(guard.list.get())) continue;
    const PyRef now = items_of(guard.list.get());
    const Py_ssize_t count = PyTuple_GET_SIZE(guard.contents.get());
    bool same = PyTuple_GET_SIZE(now.get()) == count;
    for (Py_ssize_t i = 0; same && i < count; ++i)
      same = same_constant(PyTuple_GET_ITEM(guard.contents.get(), i), PyTuple_GET_ITEM(now.get(), i));
    if (!same) tell(guard.list.get(), PyTuple_GET_SIZE(now.get()) != count);
  }
  for (const Dict& guard : dicts_)  // its length is read, and it gets a new number key at each call
    if (guard.whole && has_int_keys(guard.dict.get()) &&
        PyDict_GET_SIZE(guard.dict.get()) != static_cast<Py_ssize_t>(guard.items.size()))
      tell(guard.dict.get(), true);
}

// ---- Guards

bool StateGuards::dict_item(uint32_t& place, PyObject* dict, PyObject* key, PyObject* value) {
  if (is_input(dict, key)) return false;
  Dict& guard = this->dict(place, dict);
  if (guard.whole) return false;
  if (guard.items.size() == guard.items.capacity())
    guard.items.reserve(guard.items.empty() ? 4 : 4 * guard.items.size());
  guard.items.emplace_back(PyRef::borrow(key), PyRef::borrow(value));
  tie(value);
  return true;
}

void StateGuards::whole_dict(uint32_t& place, PyObject* dict, PyObject* contents) {
  Dict& guard = this->dict(place, dict);
  if (std::exchange(guard.whole, true)) return;
  guard.items.clear();
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(contents, &position, &key, &value))
    guard.items.emplace_back(PyRef::borrow(key), PyRef::borrow(is_input(dict, key) ? any_input() : value));
  for (const auto& [_, value_now] : guard.items) tie(value_now.get());
}

void StateGuards::whole_list(PyObject* list, PyObject* contents) {
  for (const List& guard : lists_)
    if (guard.list.get() == list) return;
  const PyRef items = checked(PySequence_List(items_of(contents).get()));
  const bool is_of_keys = PyDict_Check(list);  // the keys of an OrderedDict in order: separate guards cover the values
  for (const Input& input : inputs_)
    if (!is_of_keys && input.source.container.get() == list && PyLong_Check(input.source.key.get())) {
      const Py_ssize_t i = PyLong_AsSsize_t(input.source.key.get());
      if (i < PyList_GET_SIZE(items.get())) PyList_SetItem(items.get(), i, Py_NewRef(any_input()));
    }
  lists_.push_back({PyRef::borrow(list), checked(PySequence_Tuple(items.get()))});
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) tie(PyList_GET_ITEM(items.get(), i));
}

void StateGuards::whole_set(PyObject* set, PyObject* contents) {
  for (const Set& guard : sets_)
    if (guard.set.get() == set) return;
  sets_.push_back(
      {PyRef::borrow(set), checked(PyFrozenSet_New(contents)), kinds_of_numbers(contents), holds_such_items(contents)});
}

void StateGuards::length(PyObject* container, Py_ssize_t count) {
  for (const Length& guard : lengths_)
    if (guard.container.get() == container) return;
  lengths_.push_back({PyRef::borrow(container), count});
}

const StateGuards::Input* StateGuards::length_input(PyObject* container) const {
  const auto is_it = [&](const Input& i) { return i.source.container.get() == container && i.source.is_length(); };
  const auto found = std::find_if(inputs_.begin(), inputs_.end(), is_it);
  return found != inputs_.end() ? &*found : nullptr;
}

void StateGuards::cell(PyObject* cell, PyObject* value) {
  for (const Cell& guard : cells_)
    if (guard.cell.get() == cell) return;
  if (is_input(cell, nullptr)) return;
  cells_.push_back({PyRef::borrow(cell), PyRef::borrow(value)});
  tie(cells_.back().value.get());
}

void StateGuards::member(PyObject* owner, PyObject* descriptor, PyObject* value) {
  for (const Member& guard : members_)
    if (guard.owner.get() == owner && guard.descriptor.get() == descriptor) return;
  if (is_input(owner, descriptor)) return;
  members_.push_back(
      {PyRef::borrow(owner), PyRef::borrow(descriptor), PyRef::borrow(value), slot_of(owner, descriptor)});
  tie(members_.back().value.get());
}

std::string StateGuards::name_of(PyObject* object) const {
  if (const auto known = names_.find(object); known != names_.end()) return known->second;
  PyObject* module = PyDict_CheckExact(object) ? PyDict_GetItemString(object, "__name__") : nullptr;
  if (module != nullptr && PyUnicode_Check(module)) return std::string("globals of ") + utf8(module);
  return std::string("a ") + Py_TYPE(object)->tp_name;
}

bool StateGuards::miss(std::string* why, PyObject* owner, PyObject* key, PyObject* expected, PyObject* got) const {
  if (why == nullptr) return false;
  *why = text_of_item(owner, key);
  *why += ": expected " + value_text(expected) + ", got " + value_text(got);
  return false;
}

bool StateGuards::dict_same(const Dict& guard, std::string* why) const {
  if (!guard.whole) {
    for (const auto& [key, value] : guard.items) {
      PyObject* got = value_under(guard.dict.get(), key.get());
      if (!same_or_absent(value.get(), got)) return miss(why, guard.dict.get(), key.get(), value.get(), got);
    }
    return true;
  }
  if (PyDict_GET_SIZE(guard.dict.get()) != static_cast<Py_ssize_t>(guard.items.size())) {
    if (why != nullptr)
      *why = text_of_container(guard.dict.get()) + ": expected " + std::to_string(guard.items.size()) + " keys, got " +
             std::to_string(PyDict_GET_SIZE(guard.dict.get()));
    return false;
  }
  PyObject *key, *value;
  Py_ssize_t position = 0;
  for (size_t i = 0; PyDict_Next(guard.dict.get(), &position, &key, &value); ++i) {
    if (!same_constant(guard.items[i].first.get(), key) || !same_constant(guard.items[i].second.get(), value))
      return miss(why, guard.dict.get(), key, guard.items[i].second.get(), value);
  }
  return true;
}

bool StateGuards::dicts_hold(std::string* why) {
  if (watch_.size() != dicts_.size()) {
    std::vector<PyObject*> dicts;
    for (const Dict& guard : dicts_) dicts.push_back(guard.dict.get());
    watch_ = DictWatch(dicts);
  }
  if (watch_.unchanged()) return true;
  const std::vector<uint32_t> changed = watch_.changed();
  const bool hold = std::all_of(changed.begin(), changed.end(), [&](uint32_t i) { return dict_same(dicts_[i], why); });
  if (hold) watch_.all_hold();
  if (!hold && why != nullptr) prefer_public(changed, why);
  return hold;
}

// Torch's modules and other classes keep their own books in attributes with an underscore, which change beside what the
// program has changed. The change of another attribute is the reason, where there is one.
void StateGuards::prefer_public(const std::vector<uint32_t>& changed, std::string* why) const {
  for (const uint32_t i : changed)
    for (const auto& [key, value] : dicts_[i].items) {
      PyObject* const got = value_under(dicts_[i].dict.get(), key.get());
      if (is_private_item(key.get()) || same_or_absent(value.get(), got)) continue;
      miss(why, dicts_[i].dict.get(), key.get(), value.get(), got);
      return;
    }
}

bool StateGuards::holds(std::string* why) {
  if (!classes_.holds(why) || !dicts_hold(why)) return false;
  for (const Cell& guard : cells_) {
    PyObject* got = PyCell_GET(guard.cell.get());
    if (!same_or_absent(guard.value.get(), got)) return miss(why, guard.cell.get(), nullptr, guard.value.get(), got);
  }
  for (const List& guard : lists_) {
    if (same_items(guard.contents.get(), guard.list.get())) continue;
    if (why != nullptr)
      *why = text_of_container(guard.list.get()) + change_of_items(guard.contents.get(), guard.list.get());
    return false;
  }
  for (const Set& guard : sets_) {
    const int same = guard.asks_program ? same_items_asking_nobody(guard.set.get(), guard.contents.get())
                                        : PyObject_RichCompareBool(guard.set.get(), guard.contents.get(), Py_EQ);
    if (same == 1 && (guard.kinds == 0 || kinds_of_numbers(guard.set.get()) == guard.kinds)) continue;
    PyErr_Clear();
    if (why != nullptr) *why = text_of_container(guard.set.get()) + ": its items changed";
    return false;
  }
  for (const Length& guard : lengths_) {
    if (PyObject_Size(guard.container.get()) == guard.count) continue;
    if (why != nullptr) {
      *why = text_of_container(guard.container.get()) + ": expected " + std::to_string(guard.count) + " items";
      *why += ", got " + std::to_string(PyObject_Size(guard.container.get()));
    }
    return false;
  }
  for (const Member& guard : members_) {
    if (guard.place != nullptr && *guard.place == guard.value.get()) continue;
    const PyRef got = member_of(guard.owner.get(), guard.descriptor.get());
    if (!same_or_absent(guard.value.get(), got.get()))
      return miss(why, guard.owner.get(), guard.descriptor.get(), guard.value.get(), got.get());
  }
  return true;
}

size_t StateGuards::size() const {
  size_t count = lists_.size() + sets_.size() + lengths_.size() + cells_.size() + classes_.size() + members_.size();
  for (const Dict& guard : dicts_) count += guard.items.size();
  return count;
}

std::vector<std::string> StateGuards::texts() const {
  std::vector<std::string> out;
  for (const Dict& guard : dicts_)
    for (const auto& [key, value] : guard.items)
      out.push_back(name_of(guard.dict.get()) + "[" + value_text(key.get()) + "] is " +
                    (value && !is_constant_value(value.get()) ? std::string("the same ") + Py_TYPE(value.get())->tp_name
                                                              : value_text(value.get())));
  for (const Cell& guard : cells_) out.push_back(name_of(guard.cell.get()) + " is " + value_text(guard.value.get()));
  for (const List& guard : lists_) out.push_back(name_of(guard.list.get()) + " has the same items");
  for (const Set& guard : sets_) out.push_back(name_of(guard.set.get()) + " has the same items");
  for (const Length& guard : lengths_)
    out.push_back(name_of(guard.container.get()) + " has " + std::to_string(guard.count) + " items");
  classes_.texts(out);
  return out;
}

int StateGuards::visit(visitproc visit, void* arg) const {
  for (const Dict& guard : dicts_) {
    Py_VISIT(guard.dict.get());
    for (const auto& [key, value] : guard.items) {
      Py_VISIT(key.get());
      Py_VISIT(value.get());
    }
  }
  for (const List& guard : lists_) {
    Py_VISIT(guard.list.get());
    Py_VISIT(guard.contents.get());
  }
  for (const Set& guard : sets_) {
    Py_VISIT(guard.set.get());
    Py_VISIT(guard.contents.get());
  }
  for (const Length& guard : lengths_) Py_VISIT(guard.container.get());
  for (const Cell& guard : cells_) {
    Py_VISIT(guard.cell.get());
    Py_VISIT(guard.value.get());
  }
  for (const Input& input : inputs_) {
    Py_VISIT(input.source.container.get());
    Py_VISIT(input.source.key.get());
    Py_VISIT(input.given.get());
    if (const int r = frontend::visit(input.spec, visit, arg)) return r;
  }
  for (const auto& [_, tensor] : tied_leaves_) Py_VISIT(tensor.get());
  for (const auto& [_, name] : absent_) Py_VISIT(name.get());
  for (const Stranger& stranger : strangers_) Py_VISIT(stranger.container.get());
  for (const PyRef& container : tied_containers_) Py_VISIT(container.get());
  for (const Member& guard : members_) {
    Py_VISIT(guard.owner.get());
    Py_VISIT(guard.descriptor.get());
    Py_VISIT(guard.value.get());
  }
  return classes_.visit(visit, arg);
}

}  // namespace cresset::frontend
