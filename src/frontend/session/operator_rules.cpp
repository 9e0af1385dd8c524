// The trace rules of operators: what the session does before the evaluator runs one.
#include <opcode.h>
#include <torch/csrc/Exceptions.h>

#include <algorithm>

#include "frontend/cache_entries/growing_containers.h"
#include "frontend/cpython/dict_keys.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/eval/bytecode.h"
#include "frontend/feedback/specializations.h"
#include "frontend/guards/tensor_class.h"
#include "frontend/session/rules.h"
#include "frontend/session/session.h"
#include "frontend/trace_rules/polyfills.h"
#include "frontend/trace_rules/special_cases.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/symbols.h"
#include "frontend/values/tensor_indices.h"

namespace cresset::frontend {
namespace {

// x[:t]: torch's code reads the number from the tensor.
bool is_slice_by_tensors(PyObject* object) {
  if (!PySlice_Check(object)) return false;
  const auto* slice = (const PySliceObject*)object;
  return is_exact_tensor(slice->start) || is_exact_tensor(slice->stop) || is_exact_tensor(slice->step);
}

// Builtin values, whose operators are C code.
bool is_builtin_operand(PyObject* object) {
  return PyUnicode_CheckExact(object) || PyDict_CheckExact(object) || PyLong_CheckExact(object) ||
         PyFloat_CheckExact(object) || PyBool_Check(object) || PyList_CheckExact(object) ||
         PyTuple_CheckExact(object) || object == Py_None || PyRange_Check(object) || is_slice_by_tensors(object);
}

bool is_builtin_number(PyObject* object) {
  return PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyComplex_CheckExact(object);
}

bool is_in_place(const CressetOperator& op) { return op.kind == CRESSET_OP_BINARY && op.operation >= NB_INPLACE_ADD; }

// list += other: the operator does not inspect the list.
bool is_only_changed(const CressetOperator& op, PyObject* operand) {
  return is_in_place(op) && operand == op.operands[0] && operand != op.operands[1] && PyList_CheckExact(operand);
}

// Whether the operator inspects the items of a container operand: tensor[array, 0], f"{[array]}".
bool looks_at_items(const CressetOperator& op, PyObject* operand) {
  if (operand == nullptr || op.kind == CRESSET_OP_SUBSCRIPT) return operand != nullptr && operand == op.operands[1];
  if (op.kind == CRESSET_OP_CONTAINS && operand == op.operands[0] && PyDict_CheckExact(operand))
    return false;  // inspects only keys
  if (op.kind == CRESSET_OP_COMPARE || op.kind == CRESSET_OP_CONTAINS || op.kind == CRESSET_OP_FORMAT) return true;
  if (op.kind != CRESSET_OP_BINARY) return false;
  return PyUnicode_Check(op.operands[0]) || is_tensor(op.operands[0]) || is_tensor(op.operands[1]);
}

// Operators on values, which need no guard. of_any: an operand is opaque.
PyRef of_scalars_and_strings(const CressetOperator& op, bool of_any) {
  if (!of_any && (op.kind == CRESSET_OP_BINARY || op.kind == CRESSET_OP_COMPARE))
    if (PyRef value = with_numpy_scalar(op)) return value;
  if (PyRef text = text_of_operator(op)) return text;
  if (PyRef value = with_plain_strings(op)) return value;
  return of_plain_string(op);
}

// Whether a dictionary returns a number for a missing key.
bool counts(PyObject* dict) {
  static PyObject* const counter = module_attribute("collections", "Counter");
  if (PyType_IsSubtype(Py_TYPE(dict), (PyTypeObject*)counter)) return true;
  if (!is_defaultdict(dict)) return false;
  const PyRef maker = checked(PyObject_GetAttrString(dict, "default_factory"));
  return maker.get() == (PyObject*)&PyLong_Type || maker.get() == (PyObject*)&PyFloat_Type;
}

// Whether the dictionary is a defaultdict and only the program can decide whether it has the key, so the read may be a
// write.
bool may_insert_asking(PyObject* dict, PyObject* key) {
  return is_defaultdict(dict) && asks_program(key) && value_under(dict, key) == nullptr;
}

// Operators on tensors run here, so that the next segment begins directly behind a break.
bool has_operators_of_c(PyObject* object) { return is_exact_tensor(object) && !tensor_operators_replaced(); }

}  // namespace

// A rule notes reads of the operands, or gives the action. The first action counts.
struct Session::OperatorRules {
  using Action = std::optional<CressetAction>;

  Session& session;
  CressetActivation* activation;
  const CressetOperator& op;
  PyObject** result;
  PyObject* const first = op.operands[0];
  PyObject* const second = op.operands[1];
  const bool is_subscript = op.kind == CRESSET_OP_SUBSCRIPT, is_contains = op.kind == CRESSET_OP_CONTAINS;

  Action give(PyRef value) const { return *result = value.release(), CRESSET_RESULT; }
  Action enter(PyObject* function) const {
    return session.reads().learn(function), *result = function, CRESSET_INSTEAD;
  }
  Action natively(Operation::Kind kind, bool foreign) const {
    return session.operate_natively(activation, op, kind, foreign, result);
  }

  // Strings with symbolic parts.
  Action string() const {
    const CressetAction looked = session.look_at_string(activation, op, result);
    return looked != CRESSET_RUN ? Action(looked) : std::nullopt;
  }

  Action numpy_array() const { return session.operate_on_arrays(activation, op, result); }

  // Operators after which a new segment begins: a closed list is inspected, or a symbolic number has had too many
  // different values at this place.
  Action between_segments() const {
    if (!looks_into_growing() && !indexes_by_any() && !computes_by_any()) return {};
    return natively(*kind_of(op.kind), /*foreign=*/true);
  }

  Action equality_by_identity() const {
    if (asks_equality(op) && !is_tensor(first) && is_equal_by_identity(first) && is_equal_by_identity(second))
      session.reads().note_is(first, second);
    return {};
  }

  Action formatter() const {
    PyObject* const instead = formatter_of(op);
    return instead != nullptr ? enter(instead) : std::nullopt;
  }

  Action scalars_and_strings() const {
    PyRef value = of_scalars_and_strings(
        op, session.provenance().is_opaque(first) || (second != nullptr && session.provenance().is_opaque(second)));
    if (!value) return {};
    for (PyObject* operand : op.operands)
      if (operand != nullptr && !is_subscript) session.reads().read_deep(operand);
    return give(std::move(value));
  }

  Action concatenation() const {
    PyRef sum = session.provenance().concatenated(op, session.writes().entries());
    return sum ? give(std::move(sum)) : std::nullopt;
  }

  Action rows_of_tensor() const {
    const bool is_loop = op.kind == CRESSET_OP_ITER && opcode_in_progress(*activation) == GET_ITER;
    if (!is_loop || !session.operation().may_break_at_specialization() || operators_call_python()) return {};
    PyRef rows = rows_of(*activation, first);
    return rows ? give(std::move(rows)) : std::nullopt;
  }

  Action membership() const {
    if (is_contains && PyDict_Check(first)) {
      if (session.provenance().existed(first) && !is_constant_value(second)) session.reads().learn_keys(first);
      if (is_tensor(second)) session.identities().note_member(first, second);
      return {};
    }
    if (op.kind != CRESSET_OP_COMPARE && !is_contains) return {};
    for (PyObject* operand : op.operands)  // methods of the program compare items
      if (is_container(operand)) session.reads().read_deep(operand);
    return {};
  }

  Action item_of_dictionary() const {
    if (!is_subscript || !PyDict_Check(first) || !session.provenance().existed(first)) return {};
    if (!is_constant_value(second)) session.reads().learn_keys(first);
    if (may_insert_asking(first, second)) return natively(Operation::Kind::Subscript, /*foreign=*/true);
    session.writes().will_insert(first, second);
    return {};
  }

  // The results depend on all items: a + b, a * 2, a | b, f"{a}", "%s" % (a, b).
  Action all_items() const {
    if (op.kind != CRESSET_OP_BINARY && op.kind != CRESSET_OP_FORMAT) return {};
    const bool of_string = op.kind == CRESSET_OP_FORMAT || PyUnicode_Check(first);
    for (PyObject* operand : op.operands) {
      if (operand == nullptr || (is_only_changed(op, operand) && session.provenance().existed(operand))) continue;
      if (is_container(operand)) of_string ? session.reads().read_deep(operand) : session.reads().read_whole(operand);
      if (session.provenance().existed(operand) && viewed(operand) != nullptr) session.reads().read_whole(operand);
    }
    return {};
  }

  Action advanced_iterator() const {
    const bool advances =
        op.kind == CRESSET_OP_UNPACK || op.kind == CRESSET_OP_NEXT || op.kind == CRESSET_OP_ITER || is_contains;
    if (session.subgraphs().is_inside() && advances && PyIter_Check(first))
      session.subgraphs().no_effect_on(first, "it advances an iterator from outside");
    return {};
  }

  Action next_of_builtin() const {
    if (op.kind != CRESSET_OP_NEXT || session.provenance().existed(first)) return {};
    PyObject* const instead = next_item_of(first);
    return instead != nullptr ? enter(instead) : std::nullopt;
  }

  // A view of a container: dictionary.keys(), a proxy.
  Action viewed_container() const {
    PyObject* const inside = session.provenance().existed(first) ? viewed(first) : nullptr;
    if (inside == nullptr) return {};
    session.reads().learn(inside);
    if (!is_subscript || !PyDict_CheckExact(inside)) return session.reads().read_whole(inside), CRESSET_RUN;
    PyObject* const value = PyDict_GetItemWithError(inside, second);
    if (value == nullptr) PyErr_Clear();
    return session.reads().read_key(inside, second, value), CRESSET_RUN;
  }

  Action tensors_and_opaque_objects() const {
    const Operands found = operands();
    if (found.others && !found.opaque) return CRESSET_RUN;
    const std::optional<Operation::Kind> kind = kind_of(op.kind);
    if (!kind && found.opaque)
      return session.segment().refuse(BreakKind::UnguardedState,
                                      std::string("looks into a ") + Py_TYPE(first)->tp_name),
             CRESSET_RUN;
    if (!kind || !(found.tensors || found.opaque) || operators_call_python()) return CRESSET_RUN;
    // Operators that access containers stay with the evaluator, whose hooks report their reads and writes.
    const bool is_natively_done = is_exact_tensor(first) || is_builtin_number(first) || is_symbolic_number(first) ||
                                  session.provenance().is_opaque(first) || is_foreign(first);
    if (is_in_place(op) && !is_natively_done) return CRESSET_RUN;
    if (op.kind != CRESSET_OP_FORMAT)
      for (PyObject* operand : op.operands)
        if (operand != nullptr && is_container(operand)) session.reads().read_deep(operand);
    return natively(*kind, found.opaque);
  }

 private:
  struct Operands {
    bool tensors = false, opaque = false, others = false;
  };
  Operands operands() const {
    Operands found;
    for (PyObject* operand : op.operands) {
      found.opaque = found.opaque || (looks_at_items(op, operand) && session.provenance().holds_foreign(operand));
      if (operand == nullptr || is_builtin_operand(operand)) continue;
      const bool is_number = is_symfloat(operand) || is_symint(operand);
      found.tensors = found.tensors || is_exact_tensor(operand) || is_symfloat(operand) ||
                      (op.kind == CRESSET_OP_FORMAT && is_number);
      if (is_number || has_operators_of_c(operand)) continue;
      found.others = found.others || !session.provenance().is_uninspected(operand);
      found.opaque = found.opaque || (session.provenance().is_uninspected(operand) &&
                                      session.provenance().is_uninspected_by_guards(operand));
    }
    return found;
  }

  // An operator which inspects a closed list runs between two segments. Loops and unpacking cannot, so they reopen the
  // list.
  bool looks_into_growing() const {
    for (PyObject* operand : op.operands) {
      if (operand == nullptr || !is_growing_container(operand) || !session.provenance().existed(operand)) continue;
      if (kind_of(op.kind) && !is_in_place(op) && may_break_graph(operand)) return true;
      if (!is_in_place(op)) leave_growing(operand);
    }
    return false;
  }

  bool takes_another_value(PyObject* number) const {
    return specializes_too_often(*activation) || (note_specialization(*activation, number), false);
  }

  // items[n] with a symbolic n: whether n had too many different values.
  bool indexes_by_any() const {
    const bool is_question = is_contains && (PyDict_CheckExact(first) || PyAnySet_CheckExact(first));
    if ((!is_subscript && !is_question) || !is_unspecialized(second) ||
        !session.operation().may_break_at_specialization())
      return false;
    if (is_question) return takes_another_value(second);  // the number is hashed
    const bool is_dict = PyDict_Check(first) && has_item_method_of_c(first, "__getitem__");
    if (!PyList_CheckExact(first) && !PyTuple_CheckExact(first) && !is_dict) return false;
    if (specializes_too_often(*activation)) return true;
    const PyRef plain = without_symbols(PyRef::borrow(second));
    const PyRef item = is_dict ? PyRef::borrow(PyDict_GetItemWithError(first, plain.get()))
                               : PyRef::steal(PyObject_GetItem(first, plain.get()));
    if (!item) PyErr_Clear();
    if (item ? is_plain_result(item.get()) || is_symbolic_number(item.get()) : is_dict && counts(first))
      note_specialization(*activation, second);
    return false;
  }

  // n * scalar with a numpy scalar: the result is another scalar for each n, and no symbol can represent it.
  bool computes_by_any() const {
    PyObject* const number = specialized_by_numpy_scalar(op);
    return number != nullptr && is_unspecialized(number) && session.operation().may_break_at_specialization() &&
           takes_another_value(number);
  }
};

CressetAction Session::operate(CressetActivation* activation, const CressetOperator& op, PyObject** result) {
  // The order is a part of the semantics: a rule relies on the reads which the rules before it have noted.
  static constexpr OperatorRules::Action (OperatorRules::* kRules[])() const = {
      &OperatorRules::string,
      &OperatorRules::numpy_array,
      &OperatorRules::between_segments,
      &OperatorRules::equality_by_identity,
      &OperatorRules::formatter,
      &OperatorRules::scalars_and_strings,
      &OperatorRules::concatenation,
      &OperatorRules::rows_of_tensor,
      &OperatorRules::membership,
      &OperatorRules::item_of_dictionary,
      &OperatorRules::all_items,
      &OperatorRules::advanced_iterator,
      &OperatorRules::next_of_builtin,
      &OperatorRules::viewed_container,
      &OperatorRules::tensors_and_opaque_objects,
  };
  const OperatorRules rules{*this, activation, op, result};
  return first_action(rules, kRules, CRESSET_RUN);
}

}  // namespace cresset::frontend
