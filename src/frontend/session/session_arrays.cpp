// Operations on constant arrays, which the segment created (constant_arrays.h).
#include <ATen/ATen.h>
#include <torch/csrc/autograd/python_variable.h>

#include <cstring>

#include "frontend/cpython/py_objects.h"
#include "frontend/session/session.h"
#include "frontend/trace_rules/c_function_effects.h"
#include "frontend/trace_rules/special_cases.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {

// The result of a torch function on arrays as a constant that each call creates again; empty if impossible.
static PyRef constant_tensor(const CressetCall& call) {
  at::Tensor real;
  {
    const bridge::Capture::StepAside outside;
    const PyRef made =
        checked(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
    if (!THPVariable_CheckExact(made.get())) return {};
    real = THPVariable_Unpack(made.get());
    if (!real.device().is_cpu() || real.requires_grad() || real.layout() != at::kStrided || !real.is_contiguous() ||
        real.is_pinned())
      return {};
  }
  const at::Tensor constant = at::empty(real.sizes(), real.scalar_type());
  if (real.numel() > 0) std::memcpy(constant.mutable_data_ptr(), real.const_data_ptr(), real.nbytes());
  return PyRef::steal(THPVariable_Wrap(constant));
}

std::optional<CressetAction> Session::call_of_arrays(CressetActivation* activation, const CCall& what,
                                                     const CressetCall& call, PyObject** result) {
  if (subgraphs_.is_inside()) return {};
  const ConstantArrays::Varies varies = what_varies(provenance_, addresses_);
  const auto done = [&](PyRef value) -> CressetAction {
    operation_.in_progress().end();
    if (!value) return CRESSET_FAIL;
    return *result = value.release(), CRESSET_RESULT;
  };
  const auto end_here = [&] {
    return segment_.capture().flush({BreakKind::UntraceableFunction, "a call of " + describe_callable(call.callable)}),
           CRESSET_RUN;
  };
  if (provenance_.arrays().makes_tensor(call, varies)) {
    const bool copies = std::strcmp(((PyCFunctionObject*)call.callable)->m_ml->ml_name, "tensor") == 0;
    PyRef tensor =
        copies || provenance_.arrays().is_only_given(call.args[0], *activation) ? constant_tensor(call) : PyRef();
    if (tensor) return done(std::move(tensor));
    return end_here();
  }
  if (provenance_.arrays().computes(call, varies)) {
    for (Py_ssize_t i = 0; i < cresset_count_arguments(&call); ++i) reads_.read_deep(call.args[i]);
    PyRef value = PyRef::steal(
        PyObject_Vectorcall(call.callable, PlainArguments(call).data(), static_cast<size_t>(call.nargs), call.kwnames));
    if (!value || provenance_.arrays().add(value.get())) return done(std::move(value));
    return end_here();  // it repeats the call
  }
  const bool looks_inside = what.effect == CEffect::Pure || ConstantArrays::is_operator(call.callable);
  if ((looks_inside && provenance_.arrays().knows_any(call)) || provenance_.arrays().makes_string(call))
    return end_here();
  return {};
}

std::optional<CressetAction> Session::operate_on_arrays(CressetActivation* activation, const CressetOperator& op,
                                                        PyObject** result) {
  const bool of_both = op.operands[1] != nullptr;
  if (!provenance_.arrays().knows(op.operands[0]) && !(of_both && provenance_.arrays().knows(op.operands[1])))
    return {};
  const std::optional<Operation::Kind> kind = kind_of(op.kind);
  if (!kind) return CRESSET_RUN;
  const ConstantArrays::Varies varies = what_varies(provenance_, addresses_);
  const bool is_index =
      op.kind == CRESSET_OP_SUBSCRIPT && is_exact_tensor(op.operands[0]);  // torch converts it to a tensor
  const bool makes_string = op.kind == CRESSET_OP_FORMAT || PyUnicode_Check(op.operands[0]);
  const bool is_same = !makes_string && provenance_.arrays().is_same(op.operands[0], varies) &&
                       (!of_both || provenance_.arrays().is_same(op.operands[1], varies));
  if (!is_same) return operate_natively(activation, op, *kind, /*foreign=*/!is_index, result);
  CressetOperator plain = op;
  PyRef operands[2];
  for (size_t i = 0; i < (of_both ? 2 : 1); ++i)
    plain.operands[i] = (operands[i] = without_symbols(PyRef::borrow(op.operands[i]))).get();
  const CressetAction action = operate_natively(activation, plain, *kind, /*foreign=*/false, result);
  if (action == CRESSET_RESULT) provenance_.arrays().add(*result);
  return action;
}

}  // namespace cresset::frontend
