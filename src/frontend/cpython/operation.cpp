#include "frontend/cpython/operation.h"

#include "frontend/cpython/py_objects.h"
#include "frontend/eval/bytecode.h"
#include "frontend/eval/hooks.h"

namespace cresset::frontend {

namespace {

PyRef binary(int operation, PyObject* a, PyObject* b) {
  using Function = PyObject* (*)(PyObject*, PyObject*);
  static constexpr Function kFunctions[] = {PyNumber_Add,
                                            PyNumber_And,
                                            PyNumber_FloorDivide,
                                            PyNumber_Lshift,
                                            PyNumber_MatrixMultiply,
                                            PyNumber_Multiply,
                                            PyNumber_Remainder,
                                            PyNumber_Or,
                                            nullptr,
                                            PyNumber_Rshift,
                                            PyNumber_Subtract,
                                            PyNumber_TrueDivide,
                                            PyNumber_Xor,
                                            PyNumber_InPlaceAdd,
                                            PyNumber_InPlaceAnd,
                                            PyNumber_InPlaceFloorDivide,
                                            PyNumber_InPlaceLshift,
                                            PyNumber_InPlaceMatrixMultiply,
                                            PyNumber_InPlaceMultiply,
                                            PyNumber_InPlaceRemainder,
                                            PyNumber_InPlaceOr,
                                            nullptr,
                                            PyNumber_InPlaceRshift,
                                            PyNumber_InPlaceSubtract,
                                            PyNumber_InPlaceTrueDivide,
                                            PyNumber_InPlaceXor};
  if (operation == NB_POWER) return PyRef::steal(PyNumber_Power(a, b, Py_None));
  if (operation == NB_INPLACE_POWER) return PyRef::steal(PyNumber_InPlacePower(a, b, Py_None));
  return PyRef::steal(kFunctions[operation](a, b));
}

PyRef unary(int operation, PyObject* value) {
  if (operation == '-') return PyRef::steal(PyNumber_Negative(value));
  return PyRef::steal(operation == '+' ? PyNumber_Positive(value) : PyNumber_Invert(value));
}

PyRef format(int conversion, PyObject* value, PyObject* spec) {
  PyRef text = PyRef::borrow(value);
  if (conversion == 's') text = PyRef::steal(PyObject_Str(value));
  if (conversion == 'r') text = PyRef::steal(PyObject_Repr(value));
  if (conversion == 'a') text = PyRef::steal(PyObject_ASCII(value));
  return text ? PyRef::steal(PyObject_Format(text.get(), spec)) : PyRef();
}

PyRef as_bool(int answer) { return answer < 0 ? PyRef() : PyRef::borrow(answer ? Py_True : Py_False); }

}  // namespace

PyRef perform(const Operation& op) {
  const auto operand = [&](size_t i) { return op.operands[i].get(); };
  switch (op.kind) {
    case Operation::Kind::Call: {
      std::vector<PyObject*> args;
      for (size_t i = 1; i < op.operands.size(); ++i) args.push_back(operand(i));
      return PyRef::steal(
          PyObject_Vectorcall(operand(0), args.data(), static_cast<size_t>(op.positional), op.kwnames.get()));
    }
    case Operation::Kind::Binary:
      return binary(op.operation, operand(0), operand(1));
    case Operation::Kind::Unary:
      return unary(op.operation, operand(0));
    case Operation::Kind::Compare: {
      PyRef result = PyRef::steal(PyObject_RichCompare(operand(0), operand(1), op.operation & ~CRESSET_AS_BOOL));
      return result && (op.operation & CRESSET_AS_BOOL) != 0 ? as_bool(PyObject_IsTrue(result.get())) : result;
    }
    case Operation::Kind::Subscript:
      return PyRef::steal(PyObject_GetItem(operand(0), operand(1)));
    case Operation::Kind::Contains: {
      const int contains = PySequence_Contains(operand(0), operand(1));
      return as_bool(contains < 0 ? contains : contains ^ op.operation);
    }
    case Operation::Kind::Format:
      return format(op.operation, operand(0), op.operands.size() > 1 ? operand(1) : nullptr);
    case Operation::Kind::Truth:
      return as_bool(PyObject_IsTrue(operand(0)));
  }
  return {};
}

}  // namespace cresset::frontend
