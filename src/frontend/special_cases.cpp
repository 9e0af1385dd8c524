#include "frontend/special_cases.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <opcode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "bridge/trace_tensor.h"
#include "frontend/point.h"
#include "frontend/py_objects.h"
#include "frontend/symbols.h"

namespace cresset::frontend {

bool operators_call_python() {
  return at::impl::PythonTorchFunctionTLS::stack_len() != 0 || c10::impl::TorchDispatchModeTLS::stack_len() != 0 ||
         !at::SavedTensorDefaultHooks::get_tls_state().stack.empty();
}

// Whether an int and this scalar give the same whole number as two ints do.
static bool is_as_int(PyObject* scalar, const CressetOperator& op) {
  if (std::string_view(Py_TYPE(scalar)->tp_name) != "numpy.int64") return false;
  return op.kind == CRESSET_OP_COMPARE || (op.operation != NB_TRUE_DIVIDE && op.operation != NB_INPLACE_TRUE_DIVIDE &&
                                           op.operation != NB_POWER && op.operation != NB_INPLACE_POWER);
}

PyRef with_numpy_scalar(const CressetOperator& op) {
  PyObject *left = op.operands[0], *right = op.operands[1];
  if (right == nullptr || is_numpy_scalar(left) == is_numpy_scalar(right)) return {};
  PyObject *number = is_numpy_scalar(left) ? right : left, *scalar = number == left ? right : left;
  if (!is_symint(number) && !is_symfloat(number)) return {};
  Operation plainly;
  PyRef plain;
  if (is_symint(number) && is_as_int(scalar, op)) {  // what comes of it stays symbolic, and is an int
    plain = checked(PyNumber_Long(scalar));
    number = scalar;
  } else {
    plain = without_symbols(PyRef::borrow(number));
  }
  plainly.kind = op.kind == CRESSET_OP_BINARY ? Operation::Kind::Binary : Operation::Kind::Compare;
  plainly.operation = op.operation;
  for (PyObject* operand : op.operands) plainly.operands.push_back(operand == number ? plain : PyRef::borrow(operand));
  return checked(perform(plainly).release());
}

namespace {

bool is_own(const at::Tensor& tensor) {
  static constexpr c10::DispatchKeySet kTransforms(
      {c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper});
  if (tensor.key_set().has_any(kTransforms)) return true;
  const bridge::TraceTensor* trace = bridge::TraceTensor::from(tensor);
  return trace != nullptr && trace == tensor.unsafeGetTensorImpl();  // a guest has another one that stands in for it
}

// Whether a leaf that the tensor was computed from was there before.
bool leads_to_others(const at::Tensor& root) {
  std::unordered_set<const torch::autograd::Node*> seen;
  std::vector<torch::autograd::Node*> left;
  const auto add = [&](torch::autograd::Node* node) {
    if (node != nullptr && seen.insert(node).second) left.push_back(node);
  };
  add(torch::autograd::impl::gradient_edge(root).function.get());
  while (!left.empty()) {
    torch::autograd::Node* node = left.back();
    left.pop_back();
    const auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node);
    if (leaf != nullptr && !is_own(leaf->variable)) return true;
    for (const torch::autograd::Edge& edge : node->next_edges()) add(edge.function.get());
  }
  return false;
}

// Of the engine's run_backward(tensors, ..., accumulate_grad=False).
bool leaves_gradients_to_others(const CressetCall& call) {
  static PyObject* const name = PyUnicode_InternFromString("accumulate_grad");
  for (Py_ssize_t i = 0; call.kwnames != nullptr && i < PyTuple_GET_SIZE(call.kwnames); ++i)
    if (PyTuple_GET_ITEM(call.kwnames, i) == name && call.args[call.nargs + i] == Py_False) return false;
  for (Py_ssize_t i = 0; i < call.nargs; ++i) {
    PyObject* roots = call.args[i];
    if (!PyTuple_Check(roots)) continue;
    for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(roots); ++j) {
      PyObject* root = PyTuple_GET_ITEM(roots, j);
      if (!is_tensor(root)) return true;
      const at::Tensor& tensor = tensor_of(root);
      if (tensor.requires_grad() && leads_to_others(tensor)) return true;
    }
    return false;  // the first tuple holds the roots
  }
  return true;
}

}  // namespace

bool is_own_tensor(PyObject* object) { return is_tensor(object) && is_own(tensor_of(object)); }

bool reads_memory_of_outsider(const CCall& what) {
  static const std::unordered_set<std::string_view> kReaders = {
      "tolist", "numpy", "data_ptr", "untyped_storage", "apply_", "map_", "map2_", "__array__", "is_set_to"};
  if (what.self != nullptr && is_tensor(what.self) && std::string_view(what.name) == "storage_offset") return true;
  return what.self != nullptr && kReaders.count(what.name) != 0 && is_tensor(what.self) &&
         tensor_of(what.self).defined() && bridge::TraceTensor::from(tensor_of(what.self)) == nullptr;
}

bool differentiates_own_tensors(const CCall& what, const CressetCall& call) {
  static const std::unordered_set<std::string_view> kOfTensors = {"requires_grad_", "register_hook", "_register_hook",
                                                                  "retain_grad", "register_post_accumulate_grad_hook"};
  if (what.self != nullptr && is_own_tensor(what.self)) return kOfTensors.count(what.name) != 0;
  return std::string_view(what.name) == "run_backward" && !leaves_gradients_to_others(call);
}

// Of the compiler's own module, which takes them as they are.
static bool is_ours(PyObject* c_function) {
  return std::string_view(utf8(((PyCFunctionObject*)c_function)->m_module, "")).starts_with("cresset");
}

PyRef with_plain_bools(const CressetCall& call) {
  const size_t count = static_cast<size_t>(call.nargs) +
                       (call.kwnames != nullptr ? static_cast<size_t>(PyTuple_GET_SIZE(call.kwnames)) : 0);
  if (!PyCFunction_Check(call.callable) || is_ours(call.callable) || operators_call_python() ||
      std::none_of(call.args, call.args + count, [](PyObject* o) { return is_symbool(o); }))
    return {};
  std::vector<PyRef> plain;
  std::vector<PyObject*> args;
  for (size_t i = 0; i < count; ++i) {
    plain.push_back(is_symbool(call.args[i]) ? without_symbols(PyRef::borrow(call.args[i]))
                                             : PyRef::borrow(call.args[i]));
    args.push_back(plain.back().get());
  }
  return checked(PyObject_Vectorcall(call.callable, args.data(), static_cast<size_t>(call.nargs), call.kwnames));
}

bool asks_to_do_otherwise(const CressetActivation& activation, const CressetCall& call) {
  static PyObject* const asks = module_attribute("torch.compiler", "is_compiling");
  static PyObject* const code = [] {
    const PyRef method = checked(PyObject_GetAttrString(module_attribute("torch.nn", "Module"), "_call_impl"));
    return Py_NewRef(PyFunction_Check(method.get()) ? PyFunction_GET_CODE(method.get()) : Py_None);
  }();
  if (call.callable != asks) return false;
  if ((PyObject*)activation.code == code) return true;
  const char* file = PyUnicode_AsUTF8(activation.code->co_filename);
  return file != nullptr && std::strstr(file, "/torch/optim/") != nullptr;
}

bool is_lock_of_cached_property(const CressetActivation& activation, const CCall& what) {
  static PyObject* const get = [] {
    const PyRef type = PyRef::borrow(module_attribute("functools", "cached_property"));
    return checked(PyObject_GetAttrString(type.get(), "__get__")).release();
  }();
  if (what.self == nullptr || !PyFunction_Check(get)) return false;
  return (PyObject*)activation.code == PyFunction_GET_CODE(get) &&
         std::string_view(Py_TYPE(what.self)->tp_name) == "_thread.RLock";
}

}  // namespace cresset::frontend
