#include "bridge/decompositions/recurrent_layers.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/functorch/DynamicLayer.h>
#include <c10/core/AutogradState.h>

#include <algorithm>
#include <array>
#include <string>

#include "bridge/capture/capture.h"
#include "bridge/capture/trace_tensor.h"
#include "bridge/decompositions/recurrent_gradients.h"
#include "bridge/symbolic/size_oblivious.h"

namespace cresset::bridge {
namespace {

constexpr std::array<const char*, 4> kLayers = {"lstm", "gru", "rnn_tanh", "rnn_relu"};

bool any_of(const c10::IValue& value, bool (*property)(const at::Tensor&)) {
  if (value.isTensor()) return value.toTensor().defined() && property(value.toTensor());
  if (!value.isTensorList()) return false;
  const c10::List<at::Tensor> tensors = value.toTensorList();
  return std::any_of(tensors.begin(), tensors.end(), [&](const at::Tensor& t) { return property(t); });
}

bool wants_gradient(const c10::IValue& value) {
  return any_of(value, [](const at::Tensor& t) { return t.requires_grad(); });
}

bool has_tangent(const c10::IValue& value) {
  return any_of(value, [](const at::Tensor& t) { return t._fw_grad(/*level=*/0).defined(); });
}

const c10::IValue& argument(const c10::OperatorHandle& op, const torch::jit::Stack& stack, const char* name) {
  const size_t count = op.schema().arguments().size();
  return stack[stack.size() - count + static_cast<size_t>(*op.schema().argumentIndexWithName(name))];
}

// Autocast distinguishes the operators of the steps, and tangents need them, too.
bool needs_steps(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  if (at::autocast::is_autocast_enabled(at::kCPU)) return true;
  const auto first = stack.end() - static_cast<long>(op.schema().arguments().size());
  return c10::AutogradState::get_tls_state().get_fw_grad_mode() && std::any_of(first, stack.end(), has_tangent);
}

// Handles sequences which are not packed. Returns whether it was done; the results are then on the stack.
bool in_known_form(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  if (op.operator_name().overload_name != "input" || needs_steps(op, stack)) return false;
  const SizeOblivious oblivious;  // length and batch size may be data-dependent
  if (!at::functorch::getDynamicLayerStack().empty()) return false;
  const auto kind = std::find_if(kLayers.begin(), kLayers.end(), [&](const char* name) {
    return op.operator_name().name == std::string("aten::") + name;
  });
  RecurrentLayers network;
  network.kind = static_cast<RecurrentKind>(kind - kLayers.begin());
  network.input = argument(op, stack, "input").toTensor();
  const c10::IValue& states = argument(op, stack, "hx");
  network.states = states.isTensor() ? std::vector<at::Tensor>{states.toTensor()} : states.toTensorVector();
  network.parameters = argument(op, stack, "params").toTensorVector();
  network.has_biases = argument(op, stack, "has_biases").toBool();
  network.both_ways = argument(op, stack, "bidirectional").toBool();
  network.batch_first = argument(op, stack, "batch_first").toBool();
  network.layers = argument(op, stack, "num_layers").toInt();
  if (argument(op, stack, "train").toBool()) network.dropout = argument(op, stack, "dropout").toDouble();
  if (!has_known_form(network)) return false;
  torch::jit::drop(stack, op.schema().arguments().size());
  for (at::Tensor& result : run_layers(network)) stack.emplace_back(std::move(result));
  return true;
}

void layer(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  if (is_kept_whole(op, *stack)) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return op.callBoxed(stack);
  }
  if (in_known_form(op, *stack)) return;
  // The number of rows in each step is data: a segment which began with the steps would be specialized to these sizes.
  Capture* capture = Capture::current();
  if (op.operator_name().overload_name == "data" && capture != nullptr && !capture->closed())
    capture->flush({BreakKind::DataDependentSize, "the steps of packed sequences"});
  run_in_steps(op, *stack);
}

}  // namespace

bool is_recurrent_layer(const c10::OperatorName& name) {
  if (name.overload_name != "input" && name.overload_name != "data") return false;
  return std::any_of(kLayers.begin(), kLayers.end(),
                     [&](const char* layer) { return name.name == std::string("aten::") + layer; });
}

bool is_kept_whole(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  if (argument(op, stack, "train").toBool() && argument(op, stack, "dropout").toDouble() != 0) return false;
  if (needs_steps(op, stack)) return false;
  const auto first = stack.end() - static_cast<long>(op.schema().arguments().size());
  return !at::GradMode::is_enabled() || std::none_of(first, stack.end(), wants_gradient);
}

void run_in_steps(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const SizeOblivious oblivious;
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);  // ATen's version, made of operators
}

void add_recurrent_layers(torch::Library& above_autograd) {
  for (const std::string name : kLayers)
    for (const char* overload : {".input", ".data"})
      above_autograd.impl((name + overload).c_str(), torch::CppFunction::makeFromBoxedFunction<&layer>());
}

}  // namespace cresset::bridge
