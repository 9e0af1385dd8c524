#include "frontend/session/identity_log.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "frontend/cpython/items.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/slots.h"
#include "frontend/trace_rules/c_function_effects.h"
#include "frontend/trace_rules/special_cases.h"
#include "frontend/trace_rules/transforms.h"
#include "frontend/values/pending_error.h"

namespace cresset::frontend {

// A lookup of a key in a container, and its result.
void IdentityLog::note_key(PyObject* container, PyObject* key, bool found) {
  if (key == nullptr || PyUnicode_CheckExact(key)) return;
  const bool by_reference = PyWeakref_CheckRef(key);
  if (by_reference) key = PyWeakref_GET_OBJECT(key);
  // contents differ at each call
  const bool holds_others = provenance_.argument_path(container) != nullptr && !PyDict_Check(container);
  if (!provenance_.existed(container) || holds_others) {
    if (addresses_.is_address(key)) return addresses_.note_key_by_address(container, key, found);
    if (provenance_.is_argument(key) && is_equal_by_identity(key)) segment_.guards().all_different();
    return;
  }
  if (PyTuple_CheckExact(key)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) note_key(container, PyTuple_GET_ITEM(key, i), true);
  } else if (addresses_.is_address(key)) {
    addresses_.note_key_by_address(container, key, found);
  } else if (is_equal_by_identity(key)) {
    const auto by = by_reference ? StateGuards::HeldBy::Reference : StateGuards::HeldBy::Identity;
    found ? segment_.guards().same_object(key) : segment_.guards().stranger(key, container, by);
  }
}

// Values which may exist as several equal objects, so that guards on equality do not determine the identity.
static bool has_equals(PyObject* object) {
  if (PyTuple_Check(object)) return PyTuple_GET_SIZE(object) != 0;
  if (PyUnicode_CheckExact(object)) return PyUnicode_GET_LENGTH(object) > 1;
  if (PyBytes_CheckExact(object)) return PyBytes_GET_SIZE(object) > 1;
  return PyLong_CheckExact(object) || PyFloat_CheckExact(object);
}

void IdentityLog::note_value(const ArgSpec& spec, PyObject* object) {
  if ((spec.kind == ArgSpec::Kind::Tuple || spec.kind == ArgSpec::Kind::Value) && has_equals(object))
    values_.emplace_back(const_cast<ArgSpec*>(&spec), object);
}

// Guards the results of `is` for these arguments, and which of them are the same object.
void IdentityLog::note_is_of_values(PyObject* left, PyObject* right) {
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
      if (both || left == right || !(provenance_.existed(other) || is_constant_value(other))) continue;
      const PyRef before = spec->is_not ? spec->is_not : checked(PyTuple_New(0));
      const PyRef more = checked(PyTuple_Pack(1, other));
      spec->is_not = checked(PySequence_Concat(before.get(), more.get()));
    }
  }
}

// Looks a key up in a dictionary or a set by C code alone.
void IdentityLog::note_member(PyObject* container, PyObject* key) {
  if (!provenance_.existed(container) && !provenance_.is_argument(key)) return;
  const NotEvaluated own_business;
  const int has = PyAnySet_Check(container) ? PySet_Contains(container, key) : PyDict_Contains(container, key);
  if (has < 0) return PyErr_Clear();
  note_key(container, key, has == 1);
}

// ---- Attributes of tensor arguments

}  // namespace cresset::frontend
