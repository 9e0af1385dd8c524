#include "frontend/trace_rules/number_operators.h"

#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include <array>
#include <string_view>

#include "bridge/capture/sym_node.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/trace_rules/call_filter.h"
#include "frontend/values/number_classes.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {
namespace {

using NumberNode = c10::SymNodeImpl;
using OfNodes = c10::SymNode (NumberNode::*)(const c10::SymNode&);

struct Operator {
  const char* name;
  OfNodes of_nodes;
  bool reflected = false;
};

constexpr std::array<Operator, 16> kOperators = {{{"__add__", &NumberNode::add},
                                                  {"__radd__", &NumberNode::add, true},
                                                  {"__sub__", &NumberNode::sub},
                                                  {"__rsub__", &NumberNode::sub, true},
                                                  {"__mul__", &NumberNode::mul},
                                                  {"__rmul__", &NumberNode::mul, true},
                                                  {"__floordiv__", &NumberNode::floordiv},
                                                  {"__rfloordiv__", &NumberNode::floordiv, true},
                                                  {"__mod__", &NumberNode::mod},
                                                  {"__rmod__", &NumberNode::mod, true},
                                                  {"__eq__", &NumberNode::eq},
                                                  {"__ne__", &NumberNode::ne},
                                                  {"__lt__", &NumberNode::lt},
                                                  {"__le__", &NumberNode::le},
                                                  {"__gt__", &NumberNode::gt},
                                                  {"__ge__", &NumberNode::ge}}};
std::array<PyObject*, kOperators.size()> otherwise_of{};  // owned for the whole process

// The node of a cresset symbol, otherwise null.
c10::SymNode own_node(PyObject* number) {
  c10::SymNode node = node_of(number);
  const auto* const ours = dynamic_cast<const bridge::SymNode*>(node.get());
  return ours != nullptr && node->is_int() ? node : c10::SymNode();
}

c10::SymNode operand(PyObject* object, PyTypeObject* symbolic, NumberNode& beside) {
  if (Py_IS_TYPE(object, symbolic)) return own_node(object);
  int overflow = 0;
  const int64_t value = PyLong_CheckExact(object) ? PyLong_AsLongLongAndOverflow(object, &overflow) : 0;
  return PyLong_CheckExact(object) && overflow == 0 ? beside.wrap_int(value) : c10::SymNode();
}

PyObject* python_number(const c10::SymNode& node) {
  if (const std::optional<bool> known = node->constant_bool()) return PyBool_FromLong(*known);
  if (node->is_constant() || (!node->is_int() && !node->is_bool())) return nullptr;
  const PyTypeObject* const type = node->is_bool() ? symbool_class() : symint_class();
  return PyObject_CallOneArg((PyObject*)type, py::cast(node).ptr());
}

// The nodes of two numbers, at least one of them a cresset symbol; otherwise null.
std::pair<c10::SymNode, c10::SymNode> nodes_of(PyObject* a, PyObject* b) {
  const auto is_symbol = [](PyObject* number) { return is_symint(number) || is_symfloat(number); };
  if (!is_symbol(a) && !is_symbol(b)) return {};
  const c10::SymNode symbol = node_of(is_symbol(a) ? a : b);
  if (dynamic_cast<const bridge::SymNode*>(symbol.get()) == nullptr) return {};
  const auto node = [&](PyObject* number) {
    if (is_symbol(number)) return node_of(number);
    if (PyFloat_CheckExact(number)) return symbol->wrap_float(PyFloat_AS_DOUBLE(number));
    int overflow = 0;
    const int64_t value = PyLong_CheckExact(number) ? PyLong_AsLongLongAndOverflow(number, &overflow) : 0;
    return PyLong_CheckExact(number) && overflow == 0 ? symbol->wrap_int(value) : c10::SymNode();
  };
  return {node(a), node(b)};
}

// torch's Python code rounds the quotient, which differs from Python's float operators.
PyObject* remainder_of_float(const Operator& op, PyObject* self, PyObject* other) {
  const bool quotient = std::string_view(op.name).find("floordiv") != std::string_view::npos;
  PyObject *const a = op.reflected ? other : self, *const b = op.reflected ? self : other;
  if (PyRef value = computed_number(quotient ? "floordiv" : "mod", a, b)) return value.release();
  try {
    const PyRef x = without_symbols(PyRef::borrow(a)), y = without_symbols(PyRef::borrow(b));
    return quotient ? PyNumber_FloorDivide(x.get(), y.get()) : PyNumber_Remainder(x.get(), y.get());
  } catch (const PythonError&) {
    return nullptr;
  }
}

bool has_remainder(const Operator& op) {
  return op.of_nodes == &NumberNode::floordiv || op.of_nodes == &NumberNode::mod;
}

// Returns nullptr without an exception for unsupported operands. Python code repeats operations that raise, for the
// right error message.
PyObject* of_ints(const Operator& op, PyObject* self, PyObject* other) {
  if (!PyLong_CheckExact(other) && Py_TYPE(other) != Py_TYPE(self)) return nullptr;
  try {
    const c10::SymNode left = own_node(self);
    const c10::SymNode right = left ? operand(other, Py_TYPE(self), *left) : c10::SymNode();
    if (!right) return nullptr;
    NumberNode& first = op.reflected ? *right : *left;
    return python_number((first.*op.of_nodes)(op.reflected ? left : right));
  } catch (const std::exception&) {
    return PyErr_Clear(), nullptr;
  }
}

template <size_t kAt>
PyObject* operate(PyObject* self, PyObject* other) {
  if (is_symfloat(other) && has_remainder(kOperators[kAt])) return remainder_of_float(kOperators[kAt], self, other);
  PyObject* const done = of_ints(kOperators[kAt], self, other);
  return done != nullptr ? done : PyObject_CallFunctionObjArgs(otherwise_of[kAt], self, other, nullptr);
}

template <size_t... kAt>
std::array<PyMethodDef, sizeof...(kAt)> all_methods(std::index_sequence<kAt...>) {
  return {PyMethodDef{kOperators[kAt].name, &operate<kAt>, METH_O, nullptr}...};
}

}  // namespace

PyRef computed_number(const char* name, PyObject* a, PyObject* b) {
  try {
    const std::string_view operation = name;
    const auto [first, second] = nodes_of(a, b != nullptr ? b : a);
    if (!first || !second) return {};
    if (operation == "floordiv" || operation == "mod") {
      const c10::SymNode value = bridge::SymNode::with_remainder(operation == "floordiv", first, second);
      return value ? python_float(value) : PyRef();
    }
    const c10::SymNode whole = bridge::SymNode::whole_of(name, first, b != nullptr ? second : c10::SymNode());
    return whole ? PyRef::steal(python_number(whole)) : PyRef();
  } catch (const std::exception&) {
    return PyErr_Clear(), PyRef();
  }
}

PyObject* number_operator(PyTypeObject* type, const char* name, PyObject* otherwise) {
  static auto methods = all_methods(std::make_index_sequence<kOperators.size()>());
  for (size_t i = 0; i < kOperators.size(); ++i) {
    if (std::string_view(kOperators[i].name) != name) continue;
    Py_XSETREF(otherwise_of[i], Py_NewRef(otherwise));
    note_special_call(&methods[i]);  // for a float operand the program's call receives NotImplemented from int
    return PyDescr_NewMethod(type, &methods[i]);
  }
  return Py_NewRef(Py_None);
}

}  // namespace cresset::frontend
