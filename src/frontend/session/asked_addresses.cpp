#include "frontend/session/asked_addresses.h"

#include <string_view>

#include "frontend/cpython/py_objects.h"
#include "frontend/feedback/opaque_calls.h"
#include "frontend/trace_rules/special_cases.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {
namespace {

PyObject* id_function() {
  static PyObject* const id = module_attribute("builtins", "id");
  return id;
}

PyObject* hash_function() {
  static PyObject* const hash = module_attribute("builtins", "hash");
  return hash;
}

// The object whose address determines the hash of a tuple; nullptr when no address does.
PyObject* hashed_by_address(PyObject* object, const std::function<bool(PyObject*)>& moves) {
  if (!PyTuple_CheckExact(object)) return is_equal_by_identity(object) && moves(object) ? object : nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (PyObject* const found = hashed_by_address(PyTuple_GET_ITEM(object, i), moves)) return found;
  return nullptr;
}

// The plain numbers in a container. Empty for other objects, for large containers, and for containers with symbolic
// numbers.
PyRef numbers_in(PyObject* container) {
  constexpr Py_ssize_t kMost = 4096;
  if (!PyDict_Check(container) && !PyAnySet_Check(container) && !PyList_Check(container) && !PyTuple_Check(container))
    return {};
  const PyRef items = checked(PySequence_List(container));
  PyRef numbers = checked(PyList_New(0));
  if (PyList_GET_SIZE(items.get()) > kMost) return {};
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* const item = PyList_GET_ITEM(items.get(), i);
    if (is_symbolic_number(item)) return {};
    if (PyLong_CheckExact(item) && PyList_Append(numbers.get(), item) < 0) throw PythonError{};
  }
  return numbers;
}

bool is_same_number(PyObject* a, PyObject* b) { return PyObject_RichCompareBool(a, b, Py_EQ) == 1; }

}  // namespace

bool AskedAddresses::note_address(const CressetActivation& activation, const CressetCall& call, PyObject* number) {
  if (number == nullptr || !PyLong_CheckExact(number) || call.nargs != 1) return false;
  const bool of_hash = call.callable == hash_function();
  if (!of_hash && call.callable != id_function()) return false;
  PyObject* object = call.args[0];
  const auto moves = [&](PyObject* o) {
    return !is_constant_value(o) &&
           (!provenance_.existed(o) || provenance_.argument_path(o) != nullptr || provenance_.is_argument_tensor(o));
  };
  if (of_hash) object = hashed_by_address(object, moves);
  if (object == nullptr || !moves(object)) return false;
  addresses_.emplace(number, AskedAddress{object, PyRef::borrow((PyObject*)activation.code),
                                          PyRef::borrow(call.callable), activation.instruction});
  provenance_.keep(PyRef::borrow(number));
  if (of_hash && object != call.args[0]) return compute_with_address(number), false;
  return true;
}

bool AskedAddresses::leave_address(PyObject* number) {
  const auto found = addresses_.find(number);
  if (found == addresses_.end()) return false;
  const AskedAddress& address = found->second;
  return leave_call_whole((PyCodeObject*)address.code.get(), address.instruction, address.asked.get());
}

// A later call has another number unless its object is the same.
void AskedAddresses::compute_with_address(PyObject* number) {
  PyObject* const object = addresses_.at(number).object;
  leave_address(number);
  if (provenance_.is_argument(object)) return segment_.guards().same_object(object);
  segment_.refuse(BreakKind::UnguardedState, "computes with the address of an object that each call has its own of");
}

// Looks an address up in a container which may hold addresses of other objects of this call.
void AskedAddresses::note_key_by_address(PyObject* container, PyObject* number, bool found) {
  PyObject* const object = addresses_.at(number).object;
  if (!provenance_.is_argument(object)) return;  // no other living object has its address
  const PyRef numbers = provenance_.existed(container) ? PyRef() : numbers_in(container);
  if (!provenance_.existed(container) && !numbers) return compute_with_address(number);
  if (!numbers)
    return found ? segment_.guards().same_object(object)
                 : segment_.guards().stranger(object, container, StateGuards::HeldBy::Address);
  const PyRef others = checked(PyList_New(0));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(numbers.get()); ++i) {
    PyObject* const one = PyList_GET_ITEM(numbers.get(), i);
    if (is_address(one)) {
      segment_.guards().all_different();
    } else if (is_same_number(one, number)) {
      return segment_.guards().same_object(object);
    } else if (PyList_Append(others.get(), one) < 0) {
      throw PythonError{};
    }
  }
  if (PyList_GET_SIZE(others.get()) > 0) segment_.guards().stranger(object, others.get(), StateGuards::HeldBy::Address);
}

void AskedAddresses::compare_addresses(PyObject* left, PyObject* right) {
  if (is_address(left) && is_address(right)) return segment_.guards().all_different();
  PyObject *const number = is_address(left) ? left : right, *const other = number == left ? right : left;
  PyObject* const object = addresses_.at(number).object;
  if (is_symbolic_number(other)) return compute_with_address(number);
  if (!provenance_.is_argument(object) || !PyLong_CheckExact(other)) return;
  if (is_same_number(number, other)) return segment_.guards().same_object(object);
  segment_.guards().stranger(object, checked(PyTuple_Pack(1, other)).get(), StateGuards::HeldBy::Address);
}

// Lookups are reported by their reads, which give more detail.
void AskedAddresses::use_addresses(const CressetOperator& op) {
  if (!is_address(op.operands[0]) && (op.operands[1] == nullptr || !is_address(op.operands[1]))) return;
  if (op.kind == CRESSET_OP_SUBSCRIPT || op.kind == CRESSET_OP_CONTAINS || op.kind == CRESSET_OP_HASH) return;
  if (asks_equality(op)) return compare_addresses(op.operands[0], op.operands[1]);
  for (PyObject* operand : op.operands)
    if (operand != nullptr && is_address(operand)) compute_with_address(operand);
}

// A container method stores the number or looks it up. All other functions compute with it.
void AskedAddresses::use_addresses(const CCall& what, const CressetCall& call) {
  static PyObject* const is_instance = module_attribute("builtins", "isinstance");
  if (call.callable == is_instance || call.callable == id_function()) return;
  if (what.self != nullptr && (PyDict_Check(what.self) || PyAnySet_Check(what.self) || PyList_Check(what.self))) return;
  const Py_ssize_t named = cresset_count_named(&call);
  for (Py_ssize_t i = 0; i < call.nargs + named; ++i)
    if (is_address(call.args[i])) compute_with_address(call.args[i]);
}

ConstantArrays::Varies what_varies(const Provenance& provenance, const AskedAddresses& addresses) {
  return [&](PyObject* object) { return provenance.is_uninspected_by_guards(object) || addresses.is_address(object); };
}

}  // namespace cresset::frontend
