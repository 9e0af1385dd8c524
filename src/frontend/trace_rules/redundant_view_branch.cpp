#include "frontend/trace_rules/redundant_view_branch.h"

#include "bridge/capture/sym_node.h"
#include "bridge/capture/trace_tensor.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {
namespace {

using bridge::SymNode;
using sym::ExprId;

const SymNode* symbolic(PyObject* number) { return dynamic_cast<const SymNode*>(node_of(number).get()); }

// The size requested by an argument of expand(): an expression, or `kept` for -1.
struct Asked {
  bool known = false, kept = false;
  ExprId size;
};

Asked asked_size(PyObject* number, const SymNode& condition) {
  sym::ExprPool& pool = condition.env()->pool();
  if (PyLong_CheckExact(number)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow != 0 || value < -1) return {};
    return {true, value == -1, pool.constant(value)};
  }
  if (!is_symint(number)) return {};
  const SymNode* node = symbolic(number);
  if (node == nullptr || node->env() != condition.env()) return {};
  return {true, false, node->expr()};
}

// Whether expanding to these sizes has no effect when the condition is false: each size stays, or a size of 1 is
// expanded to a size that is then 1.
bool is_view_of_itself(const SymNode& condition, const graph::TensorType& type, const std::vector<PyObject*>& sizes) {
  sym::ShapeEnv& env = *condition.env();
  sym::ExprPool& pool = env.pool();
  if (sizes.size() != type.sizes.size()) return false;
  const ExprId one = pool.constant(1), contrary = env.simplify(pool.logical_not(condition.expr()));
  bool expands = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const Asked asked = asked_size(sizes[d], condition);
    if (!asked.known) return false;
    if (asked.kept || env.simplify(asked.size) == env.simplify(type.sizes[d])) continue;
    if (env.simplify(type.sizes[d]) != one || env.simplify(pool.eq(asked.size, one)) != contrary) return false;
    expands = true;
  }
  return expands;
}

}  // namespace

bool do_spared_view(CressetActivation* activation, PyObject* value, const std::function<bool(PyObject*)>& existed) {
  CressetSparedCall call;
  if (!is_symbool(value) || cresset_eval_spared_call(activation, &call) == 0) return false;
  const SymNode* condition = symbolic(value);
  static PyObject* const expand = PyUnicode_InternFromString("expand");
  if (condition == nullptr || call.method != expand || condition->env()->statically_known(condition->expr()))
    return false;
  CressetFrameImage image;
  cresset_eval_image(activation, CRESSET_BEFORE, &image);
  PyObject* x = image.slots[call.slot];
  if (x == nullptr || !is_exact_tensor(x) || existed(x)) return false;
  bridge::TraceTensor* tensor = bridge::TraceTensor::from(tensor_of(x));
  if (tensor == nullptr) return false;
  std::vector<PyObject*> arguments = {x};
  for (int i = 0; i < call.count; ++i) {
    PyObject* argument = call.slots[i] < 0 ? call.constants[i] : image.slots[call.slots[i]];
    if (argument == nullptr) return false;
    arguments.push_back(argument);
  }
  if (!is_view_of_itself(*condition, tensor->type(), {arguments.begin() + 1, arguments.end()})) return false;
  PyRef expanded = PyRef::steal(PyObject_VectorcallMethod(expand, arguments.data(), arguments.size(), nullptr));
  if (!expanded) return PyErr_Clear(), false;
  image.slots[call.slot] = expanded.release();
  Py_DECREF(x);
  return true;
}

}  // namespace cresset::frontend
