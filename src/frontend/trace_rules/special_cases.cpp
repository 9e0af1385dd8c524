#include "frontend/trace_rules/special_cases.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/SequenceNumber.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <fmt/format.h>
#include <opcode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/python_cpp_function.h>
#include <torch/csrc/autograd/python_function.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bridge/aten/overloads.h"
#include "bridge/capture/trace_tensor.h"
#include "frontend/cpython/code_origin.h"
#include "frontend/cpython/items.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/frames/resume_point.h"
#include "frontend/guards/state_guards.h"
#include "frontend/trace_rules/transforms.h"
#include "frontend/values/pending_error.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {

bool operators_call_python() {
  return at::impl::PythonTorchFunctionTLS::stack_len() != 0 || c10::impl::TorchDispatchModeTLS::stack_len() != 0 ||
         !at::SavedTensorDefaultHooks::get_tls_state().stack.empty();
}

// Whether the operator on this scalar and an int has the same integer result as on two ints.
static bool is_as_int(PyObject* scalar, const CressetOperator& op) {
  if (!is_numpy_int64(scalar)) return false;
  return op.kind == CRESSET_OP_COMPARE || (op.operation != NB_TRUE_DIVIDE && op.operation != NB_INPLACE_TRUE_DIVIDE &&
                                           op.operation != NB_POWER && op.operation != NB_INPLACE_POWER);
}

// For an operator on a symbolic numpy integer and another number with a numpy float as its result: the numpy operand.
// nullptr for other operators.
static PyObject* in_float_of_numpy(const CressetOperator& op) {
  PyObject *left = op.operands[0], *right = op.operands[1];
  if (op.kind != CRESSET_OP_BINARY || right == nullptr) return nullptr;
  PyObject* const number = is_numpy_int(left) ? left : is_numpy_int(right) ? right : nullptr;
  PyObject* const other = number == left ? right : left;
  if (number == nullptr) return nullptr;
  const bool is_float = PyFloat_Check(other) || is_symfloat(other) || PyComplex_Check(other);
  const bool divides = op.operation == NB_TRUE_DIVIDE || op.operation == NB_INPLACE_TRUE_DIVIDE;
  return is_float || (divides && (PyLong_Check(other) || is_symint(other))) ? number : nullptr;
}

PyObject* specialized_by_numpy_scalar(const CressetOperator& op) {
  PyObject *left = op.operands[0], *right = op.operands[1];
  if ((op.kind != CRESSET_OP_BINARY && op.kind != CRESSET_OP_COMPARE) || right == nullptr) return nullptr;
  if (PyObject* const number = in_float_of_numpy(op)) return number;
  if (is_numpy_scalar(left) == is_numpy_scalar(right)) return nullptr;
  PyObject *number = is_numpy_scalar(left) ? right : left, *scalar = number == left ? right : left;
  return is_symfloat(number) || (is_symint(number) && !is_as_int(scalar, op)) ? number : nullptr;
}

bool is_evaluated(const CressetActivation& innermost, PyObject* frame) {
  for (const CressetActivation* a = &innermost; a != nullptr; a = a->caller)
    if (cresset_eval_is_frame(a, frame)) return true;
  return false;
}

bool asks_equality(const CressetOperator& op) {
  const int comparison = op.operation & ~CRESSET_AS_BOOL;
  return op.kind == CRESSET_OP_COMPARE && (comparison == Py_EQ || comparison == Py_NE);
}

PyRef with_numpy_scalar(const CressetOperator& op) {
  PyObject *left = op.operands[0], *right = op.operands[1];
  if (in_float_of_numpy(op) != nullptr) {
    Operation plain{.kind = Operation::Kind::Binary, .operation = op.operation};
    for (PyObject* operand : op.operands) plain.operands.push_back(without_symbols(PyRef::borrow(operand)));
    return checked(perform(plain).release());
  }
  if (right == nullptr || is_numpy_scalar(left) == is_numpy_scalar(right)) return {};
  PyObject *number = is_numpy_scalar(left) ? right : left, *scalar = number == left ? right : left;
  if (!is_symint(number) && !is_symfloat(number)) return {};
  Operation plainly;
  PyRef plain;
  const bool stays_symbolic = is_symint(number) && is_as_int(scalar, op);
  if (stays_symbolic) {
    plain = checked(PyNumber_Long(scalar));
    number = scalar;
  } else {
    plain = without_symbols(PyRef::borrow(number));
  }
  plainly.kind = op.kind == CRESSET_OP_BINARY ? Operation::Kind::Binary : Operation::Kind::Compare;
  plainly.operation = op.operation;
  for (PyObject* operand : op.operands) plainly.operands.push_back(operand == number ? plain : PyRef::borrow(operand));
  const PyRef value = checked(perform(plainly).release());
  return stays_symbolic ? numpy_int_of(value.get()) : value;
}

namespace {

bool is_own(const at::Tensor& tensor) {
  static constexpr c10::DispatchKeySet kTransforms(
      {c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper});
  if (tensor.key_set().has_any(kTransforms)) return true;
  const bridge::TraceTensor* trace = bridge::TraceTensor::from(tensor);
  return trace != nullptr && trace == tensor.unsafeGetTensorImpl();  // an input proxy has a separate proxy tensor
}

using torch::autograd::Node;

thread_local uint64_t first_node = 0;

// Calls visit(node) for the nodes in the tensor's autograd graph, and continues behind a node if visit returns true.
template <class Visit>
void walk(const std::vector<Node*>& from, Visit&& visit) {
  std::unordered_set<const Node*> seen;
  std::vector<Node*> left;
  const auto add = [&](Node* node) {
    if (node != nullptr && seen.insert(node).second) left.push_back(node);
  };
  for (Node* node : from) add(node);
  while (!left.empty()) {
    Node* node = left.back();
    left.pop_back();
    if (!visit(node)) continue;
    for (const torch::autograd::Edge& edge : node->next_edges()) add(edge.function.get());
  }
}

Node* node_of_gradient(PyObject* tensor) {
  if (!is_tensor(tensor) || !tensor_of(tensor).requires_grad()) return nullptr;
  return torch::autograd::impl::gradient_edge(tensor_of(tensor)).function.get();
}

// Whether the tensors were computed from a leaf that is older than the call.
bool lead_to_others(const std::vector<Node*>& roots) {
  bool found = false;
  walk(roots, [&](Node* node) {
    const auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node);
    found = found || (leaf != nullptr && !is_own(leaf->variable));
    return !found;
  });
  return found;
}

// Whether the derivative by the inputs uses nodes from before the segment, whose saved values differ at each call.
// Leaves have the maximal sequence number.
bool go_through_others(const std::vector<Node*>& roots, const std::vector<Node*>& inputs) {
  const auto is_input = [&](Node* node) { return is_among(inputs, node); };
  std::vector<Node*> others;
  walk(roots, [&](Node* node) {
    if (is_input(node)) return false;
    if (node->sequence_nr() >= first_node) return true;
    others.push_back(node);
    return false;
  });
  bool found = false;
  walk(others, [&](Node* node) { return !(found = found || is_input(node)); });
  return found;
}

// An argument of run_backward(tensors, grad_tensors, keep_graph, create_graph, inputs, allow_unreachable,
// accumulate_grad).
PyObject* argument_of_engine(const CressetCall& call, Py_ssize_t position, const char* name) {
  for (Py_ssize_t i = 0; i < cresset_count_named(&call); ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(call.kwnames, i), name) == 0)
      return call.args[call.nargs + i];
  return position < call.nargs ? call.args[position] : nullptr;
}

std::vector<Node*> nodes_of(PyObject* tensors) {
  std::vector<Node*> out;
  for (Py_ssize_t i = 0; tensors != nullptr && PyTuple_Check(tensors) && i < PyTuple_GET_SIZE(tensors); ++i)
    if (Node* node = node_of_gradient(PyTuple_GET_ITEM(tensors, i))) out.push_back(node);
  return out;
}

// Whether run_backward() affects tensors outside of the call.
bool differentiates_others(const CressetCall& call) {
  PyObject* const roots = argument_of_engine(call, 0, "tensors");
  if (roots == nullptr || !PyTuple_Check(roots)) return true;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(roots); ++i)
    if (!is_tensor(PyTuple_GET_ITEM(roots, i))) return true;
  if (argument_of_engine(call, 6, "accumulate_grad") != Py_False) return lead_to_others(nodes_of(roots));
  return go_through_others(nodes_of(roots), nodes_of(argument_of_engine(call, 4, "inputs")));
}

}  // namespace

bool is_own_tensor(PyObject* object) { return is_tensor(object) && is_own(tensor_of(object)); }

bool is_data_of_other(PyObject* object, PyObject* name) {
  return is_plain_tensor(object) && !is_own_tensor(object) && PyUnicode_CompareWithASCIIString(name, "data") == 0 &&
         !inside_transform() && !operators_call_python();
}

bool reads_foreign_memory(const CCall& what) {
  static const std::unordered_set<std::string_view> kReaders = {
      "tolist", "numpy", "data_ptr", "untyped_storage", "apply_", "map_", "map2_", "__array__", "is_set_to"};
  if (what.self == nullptr || !is_tensor(what.self)) return false;
  const at::Tensor& tensor = tensor_of(what.self);
  if (tensor.defined() && bridge::TraceTensor::from(tensor) != nullptr)
    // numpy() first asks a proxy tensor for its sizes, which would specialize them.
    return std::strcmp(what.name, "numpy") == 0 || std::strcmp(what.name, "storage_offset") == 0;
  const std::string_view name = what.name;
  return name == "storage_offset" || (tensor.defined() && kReaders.count(name) != 0);
}

bool reshapes_lazy_tensor(const CCall& what) {
  static const std::unordered_set<std::string_view> kReshaping = {"squeeze_",  "unsqueeze_", "t_",         "transpose_",
                                                                  "swapaxes_", "swapdims_",  "as_strided_"};
  if (what.self == nullptr || kReshaping.count(what.name) == 0 || !is_tensor(what.self)) return false;
  const at::Tensor& tensor = tensor_of(what.self);
  return tensor.defined() && (tensor.is_conj() || tensor.is_neg());
}

bool differentiates_own_tensors(const CCall& what, const CressetCall& call) {
  static const std::unordered_set<std::string_view> kOfTensors = {"requires_grad_", "register_hook", "_register_hook",
                                                                  "retain_grad", "register_post_accumulate_grad_hook"};
  if (what.self != nullptr && is_own_tensor(what.self)) return kOfTensors.count(what.name) != 0;
  return std::string_view(what.name) == "run_backward" && !differentiates_others(call);
}

void begin_own_nodes() { first_node = at::sequence_number::peek(); }

// torch releases differ in the pointer type which holds the node.
template <class Pointer>
static const torch::autograd::Node* node_in(const Pointer& pointer) {
  if constexpr (requires { pointer.expired(); })
    return pointer.lock().get();
  else
    return pointer.get();
}

// Leaves have the maximal sequence number.
bool is_hook_of_own_node(const CCall& what) {
  if (what.self == nullptr || std::string_view(what.name) != "register_hook") return false;
  static PyObject* const of_python = private_attribute("torch._C", "_FunctionBase");
  const torch::autograd::Node* node = nullptr;
  if (PyObject_TypeCheck(what.self, (PyTypeObject*)of_python))
    node = node_in(((THPFunction*)what.self)->cdata);
  else if (torch::autograd::THPCppFunction_Check(what.self))
    node = node_in(((torch::autograd::THPCppFunction*)what.self)->cdata);
  return node != nullptr && node->sequence_nr() >= first_node && node->sequence_nr() != UINT64_MAX &&
         node->thread_id() == at::RecordFunction::currentThreadId();
}

// Functions of cresset's own module accept symbolic numbers.
static bool is_ours(PyObject* c_function) {
  return std::string_view(utf8(((PyCFunctionObject*)c_function)->m_module, "")).starts_with("cresset");
}

namespace {

bool is_list_of(const c10::TypePtr& type, c10::TypeKind element) {
  const c10::Type* plain = type.get();
  if (const auto* optional = plain->castRaw<c10::OptionalType>()) plain = optional->getElementType().get();
  const auto* list = plain->castRaw<c10::ListType>();
  return list != nullptr && list->getElementType()->kind() == element;
}

// A bit mask of the arguments that are lists of floats in torch's operators with this name.
uint32_t read_float_lists(std::string_view name) {
  uint32_t out = 0;
  for (const c10::OperatorHandle& op : bridge::overloads_of(fmt::format("aten::{}", name))) {
    if (!op.hasSchema()) continue;
    const auto& arguments = op.schema().arguments();
    for (size_t i = 0; i < std::min<size_t>(arguments.size(), 32); ++i)
      if (is_list_of(arguments[i].type(), c10::TypeKind::FloatType)) out |= 1U << i;
  }
  return out;
}
// Under the GIL.
uint32_t float_lists_of(const char* name) {
  static std::unordered_map<std::string, uint32_t> known;
  const auto [it, fresh] = known.try_emplace(name, 0);
  if (fresh) it->second = read_float_lists(name);
  return it->second;
}

// Whether the function is from torch.ops, whose arguments are parsed by other code than those of torch's functions.
bool is_of_torch_ops(PyObject* function) {
  PyObject* self = PyCFunction_GET_SELF(function);
  return self != nullptr && (PyCapsule_CheckExact(self) || std::strstr(Py_TYPE(self)->tp_name, "pybind11") != nullptr);
}

// The argument of the schema which receives argument i of the call; nullptr: none.
const c10::Argument* receiver(const c10::FunctionSchema& schema, const CressetCall& call, Py_ssize_t i) {
  const auto& arguments = schema.arguments();
  if (i < call.nargs) return static_cast<size_t>(i) < arguments.size() ? &arguments[static_cast<size_t>(i)] : nullptr;
  const std::optional<int> named = schema.argumentIndexWithName(utf8(PyTuple_GET_ITEM(call.kwnames, i - call.nargs)));
  return named ? &arguments[static_cast<size_t>(*named)] : nullptr;
}

// Whether an operator with this name, of any library, may take a list of ints where the call has a symbolic int. torch
// accepts a plain int for such a list, and no symbolic int. The functions of single overloads have no name.
bool may_give_int_for_list(const CressetCall& call, std::string_view name) {
  if (name.empty()) return true;
  const auto is_given_for_list = [&](const c10::FunctionSchema& schema) {
    for (Py_ssize_t i = 0; i < cresset_count_arguments(&call); ++i) {
      const c10::Argument* const argument = is_symint(call.args[i]) ? receiver(schema, call, i) : nullptr;
      if (argument != nullptr && is_list_of(argument->type(), c10::TypeKind::IntType)) return true;
    }
    return false;
  };
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& known : dispatcher.getAllOpNames()) {
    if (std::string_view(known.name).substr(known.name.rfind(':') + 1) != name) continue;
    const std::optional<c10::OperatorHandle> op = dispatcher.findSchema(known);
    if (op && is_given_for_list(op->schema())) return true;
  }
  return false;
}

bool any_item(PyObject* object, bool (*is)(PyObject*)) {
  if (!PyTuple_Check(object) && !PyList_Check(object)) return false;
  PyObject** items = PySequence_Fast_ITEMS(object);
  return any_among(items, items + PySequence_Fast_GET_SIZE(object), is);
}
bool holds_symint(PyObject* object) { return any_item(object, is_symint); }
bool holds_symbolic_number(PyObject* object) { return any_item(object, is_symbolic_number); }

PyRef as_floats(PyObject* numbers) {
  PyRef out = checked(PySequence_List(numbers));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(out.get()); ++i) {
    PyObject* item = PyList_GET_ITEM(out.get(), i);
    if (is_symint(item)) PyList_SetItem(out.get(), i, python_float(node_of(item)->sym_float()).release());
  }
  return out;
}

}  // namespace

// torch._foreach_mul_(tensors, numbers), torch._fused_adamw_(..., lr=number): torch parses these numbers as plain
// floats.
static PyRef of_plain_floats(const CressetCall& call, std::string_view name) {
  const bool of_lists = name.starts_with("_foreach_"), fused = name.starts_with("_fused_");
  const Py_ssize_t named = cresset_count_named(&call);
  const auto holds_symfloat = [](PyObject* arg) { return is_symfloat(arg) || any_item(arg, is_symfloat); };
  const auto holds_list = [](PyObject* arg) { return any_item(arg, is_symfloat); };
  if (!of_lists && !fused) return {};
  PyObject* const* const end = call.args + call.nargs + named;
  if (of_lists ? !any_among(call.args, end, holds_list) : !any_among(call.args, end, holds_symfloat)) return {};
  static PyObject *const each = module_attribute(python_names::kPlainFloats, "foreach_by_numbers"),
                         *const step = module_attribute(python_names::kPlainFloats, "fused_step_by_number");
  const PyRef text = checked(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
  std::vector<PyObject*> args{text.get()};
  args.insert(args.end(), call.args, end);
  const NotEvaluated own_business;
  return checked(
      PyObject_Vectorcall(of_lists ? each : step, args.data(), static_cast<size_t>(call.nargs) + 1, call.kwnames));
}

// Whether the arguments may contain a symbolic number, directly or in containers.
static bool may_take_symbols(const CressetCall& call) {
  const auto may_be_one = [](PyObject* object) { return may_be_symbolic(object) && !is_exact_tensor(object); };
  return any_among(call.args, call.args + cresset_count_arguments(&call), [&](PyObject* arg) {
    if (!PyTuple_Check(arg) && !PyList_Check(arg)) return may_be_one(arg) || is_container(arg);
    PyObject** const items = PySequence_Fast_ITEMS(arg);
    return any_among(items, items + PySequence_Fast_GET_SIZE(arg),
                     [&](PyObject* item) { return may_be_one(item) || is_container(item); });
  });
}

PyRef with_numbers_it_takes(const CressetCall& call) {
  if (!may_take_symbols(call)) return {};
  const auto count = static_cast<size_t>(cresset_count_arguments(&call));
  const bool is_function = is_c_function(call.callable);
  if ((!is_function && !Py_IS_TYPE(call.callable, &PyMethodDescr_Type)) || operators_call_python()) return {};
  if (is_function && is_ours(call.callable)) return {};
  const char* const name = is_function ? ((PyCFunctionObject*)call.callable)->m_ml->ml_name : "";
  if (is_function)
    if (PyRef value = of_plain_floats(call, name)) return value;
  const uint32_t floats =
      is_function && any_among(call.args, call.args + call.nargs, holds_symint) ? float_lists_of(name) : 0;
  bool specializes_ints = false;
  if (is_function && any_among(call.args, call.args + count, is_symint) && is_of_torch_ops(call.callable)) {
    PyRef value =
        PyRef::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
    if (value) return value;
    // Where torch's parser has refused the symbolic int, the call has had no side effect. Any other error is raised
    // again.
    if (PyErr_ExceptionMatches(PyExc_RuntimeError) == 0 || !may_give_int_for_list(call, name)) throw PythonError{};
    PyErr_Clear();
    specializes_ints = true;
  }
  if (floats == 0 && !specializes_ints &&
      !any_among(call.args, call.args + count, [](PyObject* o) { return is_symbool(o); }))
    return {};
  std::vector<PyRef> taken;
  std::vector<PyObject*> args;
  for (size_t i = 0; i < count; ++i) {
    PyObject* arg = call.args[i];
    const bool float_list = i < static_cast<size_t>(call.nargs) && i < 32 && (floats >> i & 1) != 0;
    const bool specialized = is_symbool(arg) || (specializes_ints && is_symint(arg));
    taken.push_back(float_list && holds_symint(arg) ? as_floats(arg)
                    : specialized                   ? without_symbols(PyRef::borrow(arg))
                                                    : PyRef::borrow(arg));
    args.push_back(taken.back().get());
  }
  return checked(PyObject_Vectorcall(call.callable, args.data(), static_cast<size_t>(call.nargs), call.kwnames));
}

namespace {

bool is_number_type(PyTypeObject* type) {
  return type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || type == &PyComplex_Type;
}

bool is_of_numbers(PyObject* callable) {
  if (Py_IS_TYPE(callable, &PyMethodDescr_Type) || Py_IS_TYPE(callable, &PyWrapperDescr_Type))
    return is_number_type(((PyDescrObject*)callable)->d_type);
  if (is_method_wrapper(callable)) {
    PyObject* const self = decompose_wrapper(callable).self;
    return PyLong_Check(self) || PyFloat_Check(self);
  }
  if (!is_c_function(callable)) return false;
  static PyObject* const math = import_module("math").release();
  if (PyCFunction_GET_SELF(callable) != math) return false;
  static const std::unordered_set<std::string_view> kSymbolic = {"floor", "ceil", "trunc", "prod", "sqrt"};
  return kSymbolic.count(((PyCFunctionObject*)callable)->m_ml->ml_name) == 0;
}

}  // namespace

bool asks_for_types(const CressetCall& call) {
  static PyObject* const is_instance = module_attribute("builtins", "isinstance");
  const Py_ssize_t count = cresset_count_arguments(&call);
  const auto any = [&](auto&& is) { return any_among(call.args, call.args + count, is); };
  if (call.callable == is_instance || is_c_function(call.callable)) return false;
  return any([&](PyObject* arg) {
           return arg == (PyObject*)&PyType_Type || arg == is_instance ||
                  (is_method_wrapper(arg) && is_of_numbers(arg)) ||
                  ((Py_IS_TYPE(arg, &PyMethodDescr_Type) || Py_IS_TYPE(arg, &PyWrapperDescr_Type)) &&
                   is_number_type(((PyDescrObject*)arg)->d_type));
         }) &&
         any(holds_symbolic_number);
}

PyRef of_plain_string(const CressetOperator& op) {
  if (op.kind != CRESSET_OP_BINARY || op.operation != NB_REMAINDER) return {};
  PyObject *text = op.operands[0], *values = op.operands[1];
  if (!PyUnicode_Check(text) && !PyBytes_Check(text)) return {};
  if (!is_symbolic_number(values) && !(PyTuple_Check(values) && holds_symbolic_number(values))) return {};
  return checked(PyNumber_Remainder(text, without_symbols(PyRef::borrow(values)).get()));
}

// operator.methodcaller("__add__", n)(2): the caller object holds the number.
static PyRef by_plain_method_caller(const CressetCall& call) {
  static auto* const type = (PyTypeObject*)module_attribute("operator", "methodcaller");
  if (!Py_IS_TYPE(call.callable, type) || call.nargs != 1 || call.kwnames != nullptr) return {};
  if (!is_constant_value(call.args[0])) return {};
  const PyRef made_by = checked(PyObject_CallMethod(call.callable, "__reduce__", nullptr));
  PyObject *const maker = PyTuple_GET_ITEM(made_by.get(), 0), *const args = PyTuple_GET_ITEM(made_by.get(), 1);
  const PyRef plain = without_symbols(PyRef::borrow(args));
  if (plain.get() == args && maker == (PyObject*)type) return {};
  const PyRef caller = checked(PyObject_CallObject(without_symbols(PyRef::borrow(maker)).get(), plain.get()));
  return checked(PyObject_CallOneArg(caller.get(), call.args[0]));
}

// functools.partial(int.__add__, n)(2).
static PyRef of_partial_numbers(const CressetCall& call) {
  static auto* const type = (PyTypeObject*)module_attribute("functools", "partial");
  if (!Py_IS_TYPE(call.callable, type)) return {};
  const PyRef function = checked(PyObject_GetAttrString(call.callable, "func")),
              given = checked(PyObject_GetAttrString(call.callable, "args")),
              named = checked(PyObject_GetAttrString(call.callable, "keywords"));
  if (!is_of_numbers(function.get()) || PyDict_GET_SIZE(named.get()) != 0) return {};
  std::vector<PyObject*> args(PySequence_Fast_ITEMS(given.get()),
                              PySequence_Fast_ITEMS(given.get()) + PyTuple_GET_SIZE(given.get()));
  args.insert(args.end(), call.args, call.args + call.nargs);
  CressetCall whole = call;
  whole.callable = function.get();
  whole.args = args.data();
  whole.nargs = static_cast<Py_ssize_t>(args.size());
  return with_plain_numbers(whole);
}

PyRef of_plain_numbers(const CressetCall& call) {
  if (is_of_numbers(call.callable)) return with_plain_numbers(call);
  PyRef value = by_plain_method_caller(call);
  return value ? std::move(value) : of_partial_numbers(call);
}

PyRef with_plain_numbers(const CressetCall& call) {
  if (call.kwnames != nullptr || !any_among(call.args, call.args + call.nargs, is_symbolic_number)) return {};
  std::vector<PyRef> plain;
  std::vector<PyObject*> args;
  for (Py_ssize_t i = 0; i < call.nargs; ++i) {
    PyObject* arg = call.args[i];
    plain.push_back(is_symbolic_number(arg) ? without_symbols(PyRef::borrow(arg)) : PyRef::borrow(arg));
    args.push_back(plain.back().get());
  }
  return checked(PyObject_Vectorcall(call.callable, args.data(), args.size(), nullptr));
}

// Whether the call runs no code of the program, so that it can be repeated.
static bool is_all_in_c(const CressetCall& call, Py_ssize_t count) {
  PyObject* const callable = call.callable;
  if (PyType_Check(callable)) {
    static PyObject* const made = PyUnicode_InternFromString("__new__");
    static PyObject* const begun = PyUnicode_InternFromString("__init__");
    PyObject* const by[2] = {_PyType_Lookup((PyTypeObject*)callable, made),
                             _PyType_Lookup((PyTypeObject*)callable, begun)};
    if (by[0] == nullptr || !is_c_function(by[0]) || by[1] == nullptr || !Py_IS_TYPE(by[1], &PyWrapperDescr_Type))
      return false;
  } else if (!is_c_function(callable) && !Py_IS_TYPE(callable, &PyMethodDescr_Type)) {
    return false;
  }
  return !any_among(call.args, call.args + count,
                    [](PyObject* arg) { return PyFunction_Check(arg) || PyMethod_Check(arg) || PyGen_Check(arg); });
}

static bool is_or_holds_symbolic(PyObject* arg) { return is_symbolic(arg) || any_item(arg, is_symbolic); }

PlainArguments::PlainArguments(const CressetCall& call) {
  const Py_ssize_t count = cresset_count_arguments(&call);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyRef arg = PyRef::borrow(call.args[i]);
    if (PyList_CheckExact(arg.get()) && is_or_holds_symbolic(arg.get()))  // the program's list is not changed
      arg = checked(PySequence_List(without_symbols(checked(PySequence_Tuple(arg.get()))).get()));
    else if (is_or_holds_symbolic(arg.get()))
      arg = without_symbols(std::move(arg));
    plain_.push_back(std::move(arg));
    args_.push_back(plain_.back().get());
  }
}

PyRef done_with_plain_numbers(const CressetCall& call, CEffect effect, PyObject* exception) {
  if (effect != CEffect::Pure && effect != CEffect::Reads) return {};
  if (!PyErr_GivenExceptionMatches(exception, PyExc_TypeError) || PyFunction_Check(call.callable)) return {};
  const Py_ssize_t count = cresset_count_arguments(&call);
  if (!any_among(call.args, call.args + count, is_or_holds_symbolic)) return {};
  if (effect == CEffect::Reads && !is_all_in_c(call, count)) return {};
  return checked(
      PyObject_Vectorcall(call.callable, PlainArguments(call).data(), static_cast<size_t>(call.nargs), call.kwnames));
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
