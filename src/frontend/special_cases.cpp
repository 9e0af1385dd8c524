#include "frontend/special_cases.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include "frontend/point.h"
#include "frontend/py_objects.h"
#include "frontend/symbols.h"

namespace cresset::frontend {

bool operators_call_python() {
  return at::impl::PythonTorchFunctionTLS::stack_len() != 0 || c10::impl::TorchDispatchModeTLS::stack_len() != 0;
}

PyRef with_numpy_scalar(const CressetOperator& op) {
  PyObject *left = op.operands[0], *right = op.operands[1];
  if (right == nullptr || is_numpy_scalar(left) == is_numpy_scalar(right)) return {};
  PyObject* number = is_numpy_scalar(left) ? right : left;
  if (!is_symint(number) && !is_symfloat(number)) return {};
  const PyRef plain = without_symbols(PyRef::borrow(number));
  Operation plainly;
  plainly.kind = op.kind == CRESSET_OP_BINARY ? Operation::Kind::Binary : Operation::Kind::Compare;
  plainly.operation = op.operation;
  for (PyObject* operand : op.operands) plainly.operands.push_back(operand == number ? plain : PyRef::borrow(operand));
  return checked(perform(plainly).release());
}

bool leaves_out_hooks(const CressetActivation& activation, const CressetCall& call) {
  static PyObject* const asks = module_attribute("torch.compiler", "is_compiling");
  static PyObject* const code = [] {
    const PyRef method = checked(PyObject_GetAttrString(module_attribute("torch.nn", "Module"), "_call_impl"));
    return Py_NewRef(PyFunction_Check(method.get()) ? PyFunction_GET_CODE(method.get()) : Py_None);
  }();
  return call.callable == asks && (PyObject*)activation.code == code;
}

}  // namespace cresset::frontend
