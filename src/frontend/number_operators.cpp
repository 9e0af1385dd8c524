#include "frontend/number_operators.h"

#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include <array>
#include <string_view>

#include "bridge/sym_node.h"
#include "frontend/py_objects.h"
#include "frontend/symbols.h"

namespace cresset::frontend {
namespace {

using Node = c10::SymNodeImpl;
using OfNodes = c10::SymNode (Node::*)(const c10::SymNode&);

struct Operator {
  const char* name;
  OfNodes of_nodes;
  bool reflected = false;
};

constexpr std::array<Operator, 16> kOperators = {{{"__add__", &Node::add},
                                                  {"__radd__", &Node::add, true},
                                                  {"__sub__", &Node::sub},
                                                  {"__rsub__", &Node::sub, true},
                                                  {"__mul__", &Node::mul},
                                                  {"__rmul__", &Node::mul, true},
                                                  {"__floordiv__", &Node::floordiv},
                                                  {"__rfloordiv__", &Node::floordiv, true},
                                                  {"__mod__", &Node::mod},
                                                  {"__rmod__", &Node::mod, true},
                                                  {"__eq__", &Node::eq},
                                                  {"__ne__", &Node::ne},
                                                  {"__lt__", &Node::lt},
                                                  {"__le__", &Node::le},
                                                  {"__gt__", &Node::gt},
                                                  {"__ge__", &Node::ge}}};
std::array<PyObject*, kOperators.size()> otherwise_of{};  // owned, for good

// Null unless it is a symbol of ours.
c10::SymNode own_node(PyObject* number) {
  c10::SymNode node = node_of(number);
  const auto* const ours = dynamic_cast<const bridge::SymNode*>(node.get());
  return ours != nullptr && node->is_int() ? node : c10::SymNode();
}

c10::SymNode operand(PyObject* object, PyTypeObject* symbolic, Node& beside) {
  if (Py_IS_TYPE(object, symbolic)) return own_node(object);
  int overflow = 0;
  const int64_t value = PyLong_CheckExact(object) ? PyLong_AsLongLongAndOverflow(object, &overflow) : 0;
  return PyLong_CheckExact(object) && overflow == 0 ? beside.wrap_int(value) : c10::SymNode();
}

PyObject* python_number(const c10::SymNode& node) {
  if (const std::optional<bool> known = node->constant_bool()) return PyBool_FromLong(*known);
  if (node->is_constant() || (!node->is_int() && !node->is_bool())) return nullptr;
  const py::handle type = node->is_bool() ? torch::get_symbool_class() : torch::get_symint_class();
  return py::reinterpret_borrow<py::object>(type)(py::cast(node)).release().ptr();
}

// nullptr, without an exception: not here. What raises is done again by Python code, which says why.
PyObject* of_ints(const Operator& op, PyObject* self, PyObject* other) {
  if (!PyLong_CheckExact(other) && Py_TYPE(other) != Py_TYPE(self)) return nullptr;
  try {
    const c10::SymNode left = own_node(self);
    const c10::SymNode right = left ? operand(other, Py_TYPE(self), *left) : c10::SymNode();
    if (!right) return nullptr;
    Node& first = op.reflected ? *right : *left;
    return python_number((first.*op.of_nodes)(op.reflected ? left : right));
  } catch (const std::exception&) {
    return PyErr_Clear(), nullptr;
  }
}

template <size_t kAt>
PyObject* operate(PyObject* self, PyObject* other) {
  PyObject* const done = of_ints(kOperators[kAt], self, other);
  return done != nullptr ? done : PyObject_CallFunctionObjArgs(otherwise_of[kAt], self, other, nullptr);
}

template <size_t... kAt>
std::array<PyMethodDef, sizeof...(kAt)> all_methods(std::index_sequence<kAt...>) {
  return {PyMethodDef{kOperators[kAt].name, &operate<kAt>, METH_O, nullptr}...};
}

}  // namespace

PyObject* number_operator(PyTypeObject* type, const char* name, PyObject* otherwise) {
  static auto methods = all_methods(std::make_index_sequence<kOperators.size()>());
  for (size_t i = 0; i < kOperators.size(); ++i) {
    if (std::string_view(kOperators[i].name) != name) continue;
    Py_XSETREF(otherwise_of[i], Py_NewRef(otherwise));
    return PyDescr_NewMethod(type, &methods[i]);
  }
  return Py_NewRef(Py_None);
}

}  // namespace cresset::frontend
