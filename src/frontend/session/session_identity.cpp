// Guards on object identity. Tensors, containers and objects among the arguments are guarded by structure. The program
// may ask for their identity: as a dict key, as a member of a set, by `is`, or by address. Later calls are then guarded
// on the identity as well.
#include <algorithm>
#include <array>
#include <string_view>

#include "frontend/cpython/items.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/slots.h"
#include "frontend/session/session.h"
#include "frontend/trace_rules/c_function_effects.h"
#include "frontend/trace_rules/special_cases.h"
#include "frontend/trace_rules/transforms.h"
#include "frontend/values/pending_error.h"

namespace cresset::frontend {

// A lookup of a key in a container, and its result.
void Session::note_key(PyObject* container, PyObject* key, bool found) {
  if (key == nullptr || PyUnicode_CheckExact(key)) return;
  const bool by_reference = PyWeakref_CheckRef(key);
  if (by_reference) key = PyWeakref_GET_OBJECT(key);
  // contents differ at each call
  const bool holds_others = argument_path(container) != nullptr && !PyDict_Check(container);
  if (!existed(container) || holds_others) {
    if (is_address(key)) return note_key_by_address(container, key, found);
    if (is_argument(key) && is_equal_by_identity(key)) facts_->all_different();
    return;
  }
  if (PyTuple_CheckExact(key)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) note_key(container, PyTuple_GET_ITEM(key, i), true);
  } else if (is_address(key)) {
    note_key_by_address(container, key, found);
  } else if (is_equal_by_identity(key)) {
    const auto by = by_reference ? StateFacts::HeldBy::Reference : StateFacts::HeldBy::Identity;
    found ? facts_->same_object(key) : facts_->stranger(key, container, by);
  }
}

// Whether the object is guarded by structure.
bool Session::is_argument(PyObject* object) const {
  return argument_tensors_.count(object) != 0 || argument_paths_.count(object) != 0;
}

// C methods which look an argument up. All other methods report the key that they read.
void Session::note_keys(const CCall& what, const CressetCall& call) {
  if (what.self == nullptr || what.first >= static_cast<size_t>(call.nargs)) return;
  PyObject* const key = call.args[what.first];
  const std::string_view name = what.name;
  if (!existed(what.self)) return is_equal_by_identity(key) ? note_key(what.self, key, true) : void();
  // The method may compare the key with existing keys.
  if ((PyDict_Check(what.self) || PyAnySet_Check(what.self)) && !is_constant_value(key)) learn_keys(what.self);
  if (name == "__contains__" && PyAnySet_Check(what.self) && is_equal_by_identity(key))
    return note_member(what.self, key);
  static constexpr std::array<std::string_view, 8> kOfOneKey = {"setdefault", "pop",   "discard",     "remove",
                                                                "index",      "count", "__setitem__", "__delitem__"};
  if (is_among(kOfOneKey, name)) note_key(what.self, key, true);
}

// Values which may exist as several equal objects, so that guards on equality do not determine the identity.
static bool has_equals(PyObject* object) {
  if (PyTuple_Check(object)) return PyTuple_GET_SIZE(object) != 0;
  if (PyUnicode_CheckExact(object)) return PyUnicode_GET_LENGTH(object) > 1;
  if (PyBytes_CheckExact(object)) return PyBytes_GET_SIZE(object) > 1;
  return PyLong_CheckExact(object) || PyFloat_CheckExact(object);
}

void Session::note_value(const ArgSpec& spec, PyObject* object) {
  if ((spec.kind == ArgSpec::Kind::Tuple || spec.kind == ArgSpec::Kind::Value) && has_equals(object))
    values_.emplace_back(const_cast<ArgSpec*>(&spec), object);
}

// Guards the results of `is` for these arguments, and which of them are the same object.
void Session::note_is_of_values(PyObject* left, PyObject* right) {
  if (!has_equals(left) || Py_TYPE(left) != Py_TYPE(right)) return;
  const auto is_given = [&](PyObject* o) {
    return std::any_of(values_.begin(), values_.end(), [&](const auto& value) { return value.second == o; });
  };
  const auto number_of = [&](PyObject* object) {
    uint32_t last = 0;
    for (const auto& [spec, value] : values_) {
      if (value == object && spec->asked != 0) return spec->asked;
      last = std::max(last, spec->asked);
    }
    return last + 1;
  };
  const bool both = left != right && is_given(left) && is_given(right);  // an argument may also be a global
  for (const auto& [one, other] : {std::pair(left, right), std::pair(right, left)}) {
    const uint32_t number = both ? number_of(one) : 0;
    for (const auto& [spec, value] : values_) {
      if (value != one) continue;
      if (both) spec->asked = number;
      if (left == right) spec->is = PyRef::borrow(one);
      if (both || left == right || !(existed(other) || is_constant_value(other))) continue;
      const PyRef before = spec->is_not ? spec->is_not : checked(PyTuple_New(0));
      const PyRef more = checked(PyTuple_Pack(1, other));
      spec->is_not = checked(PySequence_Concat(before.get(), more.get()));
    }
  }
}

// Two objects, compared by `is`. The guard that led to an object in state determines its identity.
void Session::note_is(PyObject* left, PyObject* right) {
  note_is_of_values(left, right);
  if (left == right) {  // or by the identity guard of another argument
    if (argument_path(left) != nullptr && seen_.contains({left, Py_Ellipsis})) facts_->same_object(left);
    return;
  }
  if (is_argument(left) && is_argument(right)) return facts_->all_different();
  for (auto [one, other] : {std::pair(left, right), std::pair(right, left)})
    if (is_argument(one) && Py_TYPE(one) == Py_TYPE(other) && existed(other) && !is_constant_value(other))
      facts_->stranger(one, checked(PyTuple_Pack(1, other)).get(), StateFacts::HeldBy::Identity);
}

// Looks a key up in a dictionary or a set by C code alone.
void Session::note_member(PyObject* container, PyObject* key) {
  if (!existed(container) && !is_argument(key)) return;
  const NotEvaluated own_business;
  const int has = PyAnySet_Check(container) ? PySet_Contains(container, key) : PyDict_Contains(container, key);
  if (has < 0) return PyErr_Clear();
  note_key(container, key, has == 1);
}

// ---- Attributes of tensor arguments

// Attributes of a tensor argument differ at each call and are not guarded; absent attributes are guarded.
void Session::read_of_tensor(PyObject* tensor, PyObject* name) {
  if (argument_tensors_.count(tensor) == 0) return read_instance(objects_[tensor], name, nullptr);
  PyObject* dict = instance_dict(tensor);
  if (dict != nullptr && PyDict_Contains(dict, name) == 1)
    return refuse(BreakKind::UnguardedState,
                  std::string("reads attribute ") + utf8(name) + " of a tensor among the arguments");
  facts_->absent(tensor, name);
}

// The .data of a tensor that is not from the call: an alias of its memory, which no operator reports.
bool Session::asks_for_data(const CressetAttributeRead& read) const {
  return read.place == CRESSET_AT_GETSET && is_data_of_other(read.owner, read.name);
}

bool Session::is_of_this_call(PyObject* tensor, PyObject* name) const {
  if (argument_tensors_.count(tensor) == 0 || facts_->is_tied(tensor) ||
      !(is_plain_tensor(tensor) || has_plain_attributes(Py_TYPE(tensor))))
    return false;
  for (const char* const any : {"grad", "__dict__"})
    if (PyUnicode_CompareWithASCIIString(name, any) == 0) return true;
  PyObject* const dict = instance_dict(tensor);
  return dict != nullptr && PyDict_Contains(dict, name) == 1;
}

}  // namespace cresset::frontend
