#include "bridge/decompositions/recurrent_gradients.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "bridge/decompositions/optional_tensor.h"

namespace cresset::bridge {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Optional = std::optional<at::Tensor>;

int64_t gates_of(RecurrentKind kind) { return kind == RecurrentKind::Lstm ? 4 : kind == RecurrentKind::Gru ? 3 : 1; }

// The operators of the steps, for derivatives of higher order. Returns {output, the cell's last state}; `cells`
// receives the states of all steps.
variable_list one_by_one(const variable_list& given, RecurrentKind kind, bool reverse,
                         std::vector<at::Tensor>* cells = nullptr) {
  const at::Tensor &gates = given[0], &weight = given[3], &bias = given[4];
  at::Tensor state = given[1], cell = given[2];
  const int64_t length = gates.size(0);
  std::vector<at::Tensor> out(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) {
    const int64_t t = reverse ? length - 1 - i : i;
    const at::Tensor from_input = gates.select(0, t), from_state = at::linear(state, weight, optional_of(bias));
    const std::vector<at::Tensor> a = from_input.chunk(gates_of(kind), 1), b = from_state.chunk(gates_of(kind), 1);
    if (kind == RecurrentKind::Lstm) {
      cell = (a[1] + b[1]).sigmoid() * cell + (a[0] + b[0]).sigmoid() * (a[2] + b[2]).tanh();
      state = (a[3] + b[3]).sigmoid() * cell.tanh();
    } else if (kind == RecurrentKind::Gru) {
      const at::Tensor fresh = (a[2] + (a[0] + b[0]).sigmoid() * b[2]).tanh();
      state = (state - fresh) * (a[1] + b[1]).sigmoid() + fresh;
    } else {
      state = kind == RecurrentKind::Tanh ? (a[0] + b[0]).tanh() : (a[0] + b[0]).relu();
    }
    out[static_cast<size_t>(t)] = state;
    if (cells != nullptr) cells->at(static_cast<size_t>(t)) = cell;
  }
  variable_list results{at::stack(out)};
  if (kind == RecurrentKind::Lstm) results.push_back(cell);
  return results;
}

variable_list differentiable_gradients(const variable_list& saved, const variable_list& gradients, RecurrentKind kind,
                                       bool reverse) {
  const variable_list given(saved.begin(), saved.begin() + 5);
  const variable_list results = one_by_one(given, kind, reverse);
  variable_list of, seeds, wanted;
  for (size_t i = 0; i < results.size(); ++i)
    if (gradients[i].defined()) of.push_back(results[i]), seeds.push_back(gradients[i]);
  for (const at::Tensor& tensor : given)
    if (tensor.defined() && tensor.requires_grad()) wanted.push_back(tensor);
  const variable_list found = torch::autograd::grad(of, wanted, seeds, true, true, true);
  variable_list out(7);
  for (size_t i = 0, k = 0; i < given.size(); ++i)
    if (given[i].defined() && given[i].requires_grad()) out[i] = found[k++];
  return out;
}

// (gates, state, cell, weight, bias) -> output, and the cell's last state.
struct Steps : torch::autograd::Function<Steps> {
  static variable_list forward(AutogradContext* context, const at::Tensor& gates, const at::Tensor& state,
                               const Optional& cell, const at::Tensor& weight, const Optional& bias,
                               int64_t kind_number, bool reverse) {
    const auto kind = static_cast<RecurrentKind>(kind_number);
    auto [out, kept] = recurrent_steps(gates, state, cell, weight, bias, kind, reverse);
    context->saved_data["kind"] = kind_number;
    context->saved_data["reverse"] = reverse;
    context->set_materialize_grads(false);
    context->save_for_backward(
        {gates, state, cell.value_or(at::Tensor()), weight, bias.value_or(at::Tensor()), out, kept});
    if (kind != RecurrentKind::Lstm) return {out};
    const c10::SymInt features = state.sym_size(1);
    const at::Tensor last = kept.select_symint(0, reverse ? c10::SymInt(0) : kept.sym_size(0) - 1);
    return {out, last.narrow_symint(1, features * 4, features).clone(at::MemoryFormat::Contiguous)};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto kind = static_cast<RecurrentKind>(context->saved_data["kind"].toInt());
    const bool reverse = context->saved_data["reverse"].toBool();
    const variable_list saved = context->get_saved_variables();
    if (at::GradMode::is_enabled()) return differentiable_gradients(saved, gradients, kind, reverse);
    const at::Tensor &state = saved[1], &cell = saved[2], &weight = saved[3], &bias = saved[4], &out = saved[5],
                     &kept = saved[6];
    const at::Tensor given = gradients[0].defined() ? gradients[0] : at::zeros_like(out);
    const Optional of_last = gradients.size() > 1 ? optional_of(gradients[1]) : std::nullopt;
    const auto [gates, first, first_cell] =
        recurrent_steps_backward(given, of_last, out, kept, state, optional_of(cell), weight, kind, reverse);
    // Gradient of the states' part in the gates. In gru's new gate the state is only a part.
    at::Tensor hidden = gates;
    if (kind == RecurrentKind::Gru) {
      const c10::SymInt n = state.sym_size(1);
      const at::Tensor of_fresh = gates.narrow_symint(2, n * 2, n) * kept.narrow_symint(2, 0, n);
      hidden = at::cat({gates.narrow_symint(2, 0, n * 2), of_fresh}, 2);
    }
    const c10::SymInt others = out.sym_size(0) - 1;
    const at::Tensor one = state.unsqueeze(0), before = reverse ? at::cat({out.narrow_symint(0, 1, others), one})
                                                                : at::cat({one, out.narrow_symint(0, 0, others)});
    const at::Tensor of_weight = hidden.flatten(0, 1).t().mm(before.flatten(0, 1));
    const at::Tensor of_bias = bias.defined() ? hidden.sum(at::IntArrayRef({0, 1})) : at::Tensor();
    return {gates, first, cell.defined() ? first_cell : at::Tensor(), of_weight, of_bias, {}, {}};
  }
};

bool are_equal(const c10::SymInt& a, const c10::SymInt& b) { return a.sym_eq(b).guard_bool(__FILE__, __LINE__); }

}  // namespace

std::tuple<at::Tensor, at::Tensor> recorded_steps(const at::Tensor& gates, const at::Tensor& state,
                                                  const Optional& cell, const at::Tensor& weight, const Optional& bias,
                                                  RecurrentKind kind, bool reverse) {
  std::vector<at::Tensor> cells(static_cast<size_t>(gates.size(0)));
  const at::Tensor out = one_by_one({gates, state, cell.value_or(at::Tensor()), weight, bias.value_or(at::Tensor())},
                                    kind, reverse, &cells)[0];
  if (kind != RecurrentKind::Lstm) return {out, at::Tensor()};
  const at::Tensor last = at::stack(cells);  // behind the four gates, which no caller reads
  return {out, at::cat({at::zeros({last.size(0), last.size(1), last.size(2) * 4}, last.options()), last}, 2)};
}

bool has_known_form(const RecurrentLayers& network) {
  const at::Tensor& input = network.input;
  const size_t states = network.kind == RecurrentKind::Lstm ? 2 : 1;
  const auto count = static_cast<size_t>(network.layers * network.directions());
  if (input.dim() != 3 || !input.device().is_cpu() || !input.is_floating_point() || network.states.size() != states)
    return false;
  if (network.parameters.size() != count * network.parameters_of_one()) return false;
  const auto alike = [&](const at::Tensor& tensor) {
    return tensor.scalar_type() == input.scalar_type() && tensor.layout() == at::kStrided &&
           tensor.device() == input.device();
  };
  if (!std::all_of(network.parameters.begin(), network.parameters.end(), alike)) return false;
  const c10::SymInt length = input.sym_size(network.batch_first ? 1 : 0);
  if (!length.sym_ge(1).guard_bool(__FILE__, __LINE__)) return false;
  for (const at::Tensor& state : network.states)
    if (!alike(state) || state.dim() != 3 || state.sym_size(0).maybe_as_int() != static_cast<int64_t>(count) ||
        !are_equal(state.sym_size(1), input.sym_size(network.batch_first ? 0 : 1)) ||
        !are_equal(state.sym_size(2), network.states[0].sym_size(2)))
      return false;
  const c10::SymInt features = network.states[0].sym_size(2), rows = features * gates_of(network.kind);
  for (size_t i = 0; i < count; ++i) {
    const auto* one = &network.parameters[i * network.parameters_of_one()];
    const bool first = i < static_cast<size_t>(network.directions());
    const c10::SymInt width = first ? input.sym_size(2) : features * network.directions();
    if (one[0].dim() != 2 || one[1].dim() != 2 || !are_equal(one[0].sym_size(1), width) ||
        !are_equal(one[0].sym_size(0), rows) || !are_equal(one[1].sym_size(0), rows) ||
        !are_equal(one[1].sym_size(1), features))
      return false;
  }
  return true;
}

std::vector<at::Tensor> run_layers(const RecurrentLayers& network) {
  at::Tensor input = network.batch_first ? network.input.transpose(0, 1) : network.input;
  std::vector<std::vector<at::Tensor>> last(network.states.size());
  for (int64_t layer = 0; layer < network.layers; ++layer) {
    std::vector<at::Tensor> outputs;
    for (int64_t direction = 0; direction < network.directions(); ++direction) {
      const int64_t index = layer * network.directions() + direction;
      const auto* own = &network.parameters[static_cast<size_t>(index) * network.parameters_of_one()];
      const Optional cell = network.states.size() > 1 ? Optional(network.states[1].select(0, index)) : std::nullopt;
      const at::Tensor gates = at::linear(input, own[0], network.has_biases ? Optional(own[2]) : std::nullopt);
      const variable_list made = Steps::apply(gates, network.states[0].select(0, index), cell, own[1],
                                              network.has_biases ? Optional(own[3]) : std::nullopt,
                                              static_cast<int64_t>(network.kind), direction == 1);
      outputs.push_back(made[0]);
      last[0].push_back(made[0].select_symint(0, direction == 1 ? c10::SymInt(0) : made[0].sym_size(0) - 1));
      if (made.size() > 1) last[1].push_back(made[1]);
    }
    input = outputs.size() > 1 ? at::cat(outputs, -1) : outputs[0];
    if (network.dropout != 0 && layer + 1 < network.layers) input = at::dropout(input, network.dropout, true);
  }
  std::vector<at::Tensor> results{network.batch_first ? input.transpose(0, 1) : input};
  for (const std::vector<at::Tensor>& states : last) results.push_back(at::stack(states));
  return results;
}

}  // namespace cresset::bridge
