#include "frontend/values/number_classes.h"

#include <algorithm>
#include <array>

#include "bridge/capture/sym_node.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {
namespace {

struct Classes {
  PyTypeObject* torchs;
  PyTypeObject* own = nullptr;
};

// Under the GIL; kept for the whole process.
std::array<Classes, 3>& classes() {
  static std::array<Classes, 3> known{{{(PyTypeObject*)module_attribute("torch", "SymInt")},
                                       {(PyTypeObject*)module_attribute("torch", "SymFloat")},
                                       {(PyTypeObject*)module_attribute("torch", "SymBool")}}};
  return known;
}

PyTypeObject* class_at(size_t which) {
  const Classes& known = classes()[which];
  return known.own != nullptr ? known.own : known.torchs;
}

// Lists may be long; their items are adopted when the program reads them.
constexpr Py_ssize_t kMostItems = 64;
constexpr int kMostDeep = 4;

void adopt_number(PyObject* number, const Classes& known) {
  if (known.own == nullptr || dynamic_cast<const bridge::SymNode*>(node_of(number).get()) == nullptr) return;
  static PyObject* const name = PyUnicode_InternFromString("__class__");
  if (PyObject_GenericSetAttr(number, name, (PyObject*)known.own) < 0) throw PythonError{};
}

void adopt_all(PyObject* object, int depth) {
  const PyTypeObject* const type = Py_TYPE(object);
  for (const Classes& known : classes())
    if (type == known.torchs) return adopt_number(object, known);
  if (depth == kMostDeep || (!PyTuple_Check(object) && !PyList_CheckExact(object))) return;
  const Py_ssize_t count = std::min(PySequence_Fast_GET_SIZE(object), kMostItems);
  for (Py_ssize_t i = 0; i < count; ++i) adopt_all(PySequence_Fast_GET_ITEM(object, i), depth + 1);
}

}  // namespace

PyTypeObject* symint_class() { return class_at(0); }
PyTypeObject* symfloat_class() { return class_at(1); }
PyTypeObject* symbool_class() { return class_at(2); }

bool is_class_of_numbers(PyTypeObject* type) {
  for (const Classes& known : classes())
    if (type == known.torchs || type == known.own) return true;
  return false;
}

PyObject* adopt(PyObject* object) {
  if (object != nullptr) adopt_all(object, 0);
  return object;
}

void adopt_arguments(const CressetCall& call) {
  const Py_ssize_t named = call.kwnames != nullptr ? PyTuple_GET_SIZE(call.kwnames) : 0;
  for (Py_ssize_t i = 0; i < call.nargs + named; ++i) adopt_all(call.args[i], 0);
}

void adopt_operands(const CressetOperator& op) {
  for (PyObject* operand : op.operands)
    if (operand != nullptr) adopt_all(operand, 0);
}

PyObject* use_numbers(PyObject*, PyObject* args) {
  PyTypeObject *symint, *symfloat, *symbool;
  if (!PyArg_ParseTuple(args, "O!O!O!", &PyType_Type, &symint, &PyType_Type, &symfloat, &PyType_Type, &symbool))
    return nullptr;
  PyTypeObject* const own[] = {symint, symfloat, symbool};
  for (size_t i = 0; i < std::size(own); ++i) classes()[i].own = (PyTypeObject*)Py_NewRef((PyObject*)own[i]);
  return Py_NewRef(Py_None);
}

PyObject* adopt_object(PyObject*, PyObject* object) {
  try {
    return Py_NewRef(adopt(object));
  } catch (const PythonError&) {
    return nullptr;
  }
}

}  // namespace cresset::frontend
