#include "frontend/session/current_operation.h"

#include <algorithm>

#include "frontend/cpython/containers.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/trace_rules/transforms.h"
#include "frontend/values/pending_error.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {

std::optional<Operation::Kind> kind_of(CressetOperatorKind kind) {
  switch (kind) {
    case CRESSET_OP_BINARY:
      return Operation::Kind::Binary;
    case CRESSET_OP_UNARY:
      return Operation::Kind::Unary;
    case CRESSET_OP_COMPARE:
      return Operation::Kind::Compare;
    case CRESSET_OP_SUBSCRIPT:
      return Operation::Kind::Subscript;
    case CRESSET_OP_CONTAINS:
      return Operation::Kind::Contains;
    case CRESSET_OP_FORMAT:
      return Operation::Kind::Format;
    default:
      return std::nullopt;
  }
}

Operation InProgress::kept() const {
  Operation out;
  out.kind = kind;
  out.operation = operation;
  if (kind != Operation::Kind::Call) {
    for (PyObject* operand : operands)
      if (operand != nullptr) out.operands.push_back(PyRef::borrow(operand));
    return out;
  }
  out.positional = call.nargs;
  out.kwnames = PyRef::borrow(call.kwnames);
  out.operands.push_back(PyRef::borrow(call.callable));
  const Py_ssize_t named = cresset_count_named(&call);
  for (Py_ssize_t i = 0; i < call.nargs + named; ++i) out.operands.push_back(PyRef::borrow(call.args[i]));
  return out;
}

void CurrentOperation::start(CressetActivation* activation, Operation::Kind kind, int operation) {
  in_progress().begin(activation, kind, operation);
  in_progress().serial = segment_.capture().live().serial();
  in_progress().done = segment_.capture().done();
  in_progress().state = TorchState::now();
  in_progress().in_transform = tangent_levels_ > 0 || in_progress().state.depth_of_transforms() > 0;
}

bool CurrentOperation::may_break_at_specialization() const {
  return !subgraphs_.is_inside() && !segment_.capture().symbolic_numbers && !in_transform();
}

void CurrentOperation::ends_inside_calls(const CressetActivation* innermost) {
  for (const CressetActivation* a = innermost; a != nullptr; a = a->caller)
    if (a->entered_from_c && a->caller != nullptr) in_calls_at_the_end_.push_back({a->caller, a->caller->instruction});
}

// Returns true once per call.
bool CurrentOperation::was_in_call_at_the_end(const CressetActivation* activation) {
  const auto is_here = [&](const CallAtTheEnd& call) { return call.activation == activation; };
  return !in_calls_at_the_end_.empty() && std::erase_if(in_calls_at_the_end_, is_here) != 0;
}

bool CurrentOperation::is_in_calls_at_the_end(const CressetActivation* innermost) {
  const auto has_come_back = [&](const CallAtTheEnd& call) {  // not all returns are reported
    const CressetActivation* a = innermost;
    while (a != nullptr && a != call.activation) a = a->caller;
    return a == nullptr || a->instruction != call.instruction;
  };
  // The returned value may have reached C code that is running now.
  if (std::erase_if(in_calls_at_the_end_, has_come_back) != 0) ends_inside_calls(innermost);
  return !in_calls_at_the_end_.empty();
}

void CurrentOperation::go_on_with(CressetActivation* activation, PyRef& value) {
  if (!segment_.capture().closed()) return;
  if (was_in_call_at_the_end(activation)) value = without_symbols(std::move(value));
  if (PyRef number = maker_.go_on(activation, CRESSET_AFTER, value.get())) value = std::move(number);
}

// CPython performed the operation, which raised the pending error.
void CurrentOperation::after_failure(CressetActivation* activation) {
  if (!segment_.capture().closed()) return;
  PyRef exception = PendingError().normalized();
  maker_.go_on(activation, CRESSET_AFTER, nullptr, exception.get());
  PyObject* type = Py_NewRef(PyExceptionInstance_Class(exception.get()));
  PyObject* traceback = PyException_GetTraceback(exception.get());
  PyErr_Restore(type, exception.release(), traceback);
}

bool CurrentOperation::in_transform() const { return tangent_levels_ > 0 || inside_transform(); }

// Containers in which the call may have stored its arguments.
static std::vector<PyObject*> containers_of(const CressetCall& call) {
  std::vector<PyObject*> out;
  PyObject* const self = is_c_function(call.callable) ? PyCFunction_GET_SELF(call.callable) : nullptr;
  if (self != nullptr && is_container(self)) out.push_back(self);
  for (Py_ssize_t i = 0; i < call.nargs; ++i)
    if (is_container(call.args[i])) out.push_back(call.args[i]);
  return out;
}

// The segment ended in the call or before it.
void CurrentOperation::after_end(CressetActivation* activation, const CressetCall& call, PyObject** result,
                                 PyObject* exception) {
  if (was_in_call_at_the_end(activation)) {
    for (PyObject* container : containers_of(call)) without_symbols(PyRef::borrow(container));
    if (*result != nullptr) {
      PyRef plain = without_symbols(PyRef::borrow(*result));
      PyRef::steal(std::exchange(*result, plain.release()));
    }
  }
  if (ended_in_ == nullptr && !is_in_calls_at_the_end(activation)) maker_.out_of_calls(activation);
  if (ended_in_ != activation || (*result == nullptr && exception == nullptr)) return;
  ended_in_ = nullptr;
  if (PyRef number = maker_.go_on(activation, CRESSET_AFTER, *result, exception))
    PyRef::steal(std::exchange(*result, number.release()));
}

}  // namespace cresset::frontend
