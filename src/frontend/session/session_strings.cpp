// Symbolic strings (symbolic_strings.h) in operators and C functions.
#include <algorithm>

#include "frontend/frames/resume_point.h"
#include "frontend/session/session.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {
namespace {

bool compares_string_of_float(const CressetOperator& op) {
  if (op.kind != CRESSET_OP_COMPARE && op.kind != CRESSET_OP_CONTAINS) return false;
  const auto breaks_graph = [](PyObject* operand) {
    return is_symbolic_string(operand) && prefers_graph_break(operand);
  };
  return breaks_graph(op.operands[0]) || breaks_graph(op.operands[1]);
}

// Replaces a value in a frame, and the items of argument tuples and dictionaries: f(*arguments, **names).
template <class F>
PyRef with_items_replaced(PyObject* object, F&& replaced) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_CheckExact(object) && PyDict_Next(object, &position, &key, &value))
    if (PyObject* now = replaced(value); now != value && PyDict_SetItem(object, key, now) < 0) throw PythonError{};
  if (!PyTuple_CheckExact(object)) return PyRef::borrow(replaced(object));
  std::vector<PyRef> items;
  bool differs = false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
    items.push_back(PyRef::borrow(replaced(PyTuple_GET_ITEM(object, i))));
    differs |= items.back().get() != PyTuple_GET_ITEM(object, i);
  }
  return differs ? tuple_of(items) : PyRef::borrow(object);
}

}  // namespace

// Performs the operation in progress in C with the plain values of symbolic strings.
static CressetAction look_in_progress(Session& session, CressetActivation* activation, bool of_float,
                                      PyObject** result) {
  Operation operation = session.operation().in_progress().kept();
  if (of_float && !session.segment().capture().symbolic_numbers)
    session.segment().capture().flush({BreakKind::SymbolicNumber, "a symbolic string with a float is inspected"});
  for (PyRef& operand : operation.operands) operand = without_symbols(operand);
  PyRef value = perform(operation);
  session.operation().in_progress().end();
  if (!value) return session.operation().after_failure(activation), CRESSET_FAIL;
  session.operation().go_on_with(activation, value);
  return *result = value.release(), CRESSET_RESULT;
}

// A comparison with the string of a float, which ends the segment.
CressetAction Session::look_at_string(CressetActivation* activation, const CressetOperator& op, PyObject** result) {
  if (!compares_string_of_float(op)) return CRESSET_RUN;
  operation_.start(activation, op.kind == CRESSET_OP_COMPARE ? Operation::Kind::Compare : Operation::Kind::Contains,
                   op.operation);
  std::copy(std::begin(op.operands), std::end(op.operands), operation_.in_progress().operands);
  return look_in_progress(*this, activation, /*of_float=*/true, result);
}

// A call which creates a string, or a method of a symbolic string.
CressetAction Session::call_method_of_string(CressetActivation* activation, const CressetCall& call,
                                             PyObject** result) {
  const auto read_all_of = [&] {
    for (Py_ssize_t i = 0; i < cresset_count_arguments(&call); ++i) reads_.read_deep(call.args[i]);
  };
  if (!PyMethod_Check(call.callable) || !is_symbolic_string(PyMethod_GET_SELF(call.callable))) {
    PyRef text = text_of_call(call);
    if (!text) return CRESSET_RUN;
    return read_all_of(), *result = text.release(), CRESSET_RESULT;
  }
  read_all_of();
  std::vector<PyObject*> args{PyMethod_GET_SELF(call.callable)};
  args.insert(args.end(), call.args, call.args + cresset_count_arguments(&call));
  CressetCall unbound = call;
  unbound.callable = PyMethod_GET_FUNCTION(call.callable);
  unbound.args = args.data();
  ++unbound.nargs;
  if (PyRef text = text_of_call(unbound)) return *result = text.release(), CRESSET_RESULT;
  operation_.start(activation, Operation::Kind::Call, 0);
  operation_.in_progress().call = call;
  const auto ends = [](PyObject* o) { return prefers_graph_break(o); };
  return look_in_progress(*this, activation, std::any_of(args.begin(), args.end(), ends), result);
}

// Always false if data-dependent numbers stay symbolic, because inspected numbers must then be specialized.
bool Session::looks_at_string_of_float(const CressetCall& call) const {
  if (segment_.capture().symbolic_numbers) return false;
  const std::vector<Py_ssize_t> looked = strings_looked_at(call);
  return std::any_of(looked.begin(), looked.end(), [&](Py_ssize_t i) { return prefers_graph_break(call.args[i]); });
}

// Replaces the symbolic strings that a C function inspects by their str, on the stack and in `call`. Returns whether
// there were any.
bool Session::look_at_strings(CressetActivation* activation, CressetCall& call) {
  const std::vector<Py_ssize_t> looked = strings_looked_at(call);
  if (looked.empty()) return false;
  std::vector<PyRef> plain;
  for (Py_ssize_t i = 0; i < cresset_count_arguments(&call); ++i) plain.push_back(PyRef::borrow(call.args[i]));
  for (const Py_ssize_t i : looked) plain[static_cast<size_t>(i)] = without_symbols(plain[static_cast<size_t>(i)]);
  const auto replaced = [&](PyObject* object) {
    for (const Py_ssize_t i : looked)
      if (call.args[i] == object) return plain[static_cast<size_t>(i)].get();
    return object;
  };
  replace_values(activation, [&](PyObject* object) { return with_items_replaced(object, replaced); });
  call.args = PySequence_Fast_ITEMS(provenance_.keep(tuple_of(plain)));
  operation_.in_progress().call = call;
  return true;
}

}  // namespace cresset::frontend
